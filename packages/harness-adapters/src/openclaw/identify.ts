import { createHash } from 'node:crypto';
import type { Identity } from '@treeward/telemetry';
import type { IdentifiableRequest } from '../types.js';
import { untimed } from './canonicalise.js';

/**
 * OpenClaw sends no session header, and a trace id that changes with every run of an agent. What it does say stands in
 * the prompt: some versions name the session in a line `Runtime: agent=…`, and a sub-agent's first user message is a block
 * that tells its depth. That message is also what tells two sub-agents apart, so it names them here.
 */
export function identifyOpenclaw({ messages, tools }: IdentifiableRequest): Identity {
  const system = messages.find((message) => message.role === 'system')?.text ?? '';
  const user = messages.find((message) => message.role === 'user')?.text ?? '';
  const runtime = /^Runtime: agent=.*$/m.exec(system)?.[0] ?? /^Runtime: agent=.*$/m.exec(user)?.[0] ?? '';
  const session = /\bsessionId=([\w-]+)/.exec(runtime)?.[1];
  const child = /\bsession=agent:[^|\s]*:subagent:([\w-]+)/.exec(runtime)?.[1];
  const depth = /\[Subagent Context\][^\n]*\(depth (\d+)\/\d+\)/.exec(user)?.[1];
  const facts = { ...(session !== undefined && { session }) };
  if (child === undefined && depth === undefined) {
    const summary = tools.length === 0 && user.trimStart().startsWith('<conversation>');
    return { ...facts, requestClass: summary ? 'compaction' : 'main', depth: 0 };
  }
  return {
    ...facts,
    agent: child ?? `task-${createHash('sha256').update(untimed(user)).digest('hex').slice(0, 16)}`,
    requestClass: 'subagent',
    ...(depth !== undefined && { depth: Number(depth) }),
  };
}
