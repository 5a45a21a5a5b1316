import type { Identity, Json, RecordEvent } from '@treeward/telemetry';
import { recoverTree } from '../recover.js';
import type { RolloutTree } from '../types.js';
import { RecordBuilder, type BuiltCall } from './record-builder.js';

export const system = (text: string): Json => ({ role: 'system', text });
export const user = (text: string): Json => ({ role: 'user', text });
export const tool = (text: string): Json => ({ role: 'tool', callId: 'x', text });
export const says = (text: string): Json => ({ role: 'assistant', parts: [{ type: 'text', text }] });
/** An assistant turn that calls tools: name and the one string argument of each. */
export const uses = (...calls: [name: string, argument: string][]): Json => ({
  role: 'assistant',
  parts: calls.map(([name, argument]) => ({ type: 'tool_call', id: name, name, arguments: { argument } })),
});

export interface Spoken extends Partial<Omit<BuiltCall, 'call' | 'messages' | 'reply' | 'prompt'>> {
  /** The whole history as the harness sends it. */
  messages: Json[];
  /** An assistant message; null when nothing was sampled. */
  reply: Json | null;
  tools?: readonly string[];
  identity?: Identity;
}

/**
 * A rollout told as what the harness sent and what came back: calls are numbered in their order and follow each other
 * unless times are given. Every message is one token, so that tokens repeat where messages do.
 */
export function recoverTalk(...calls: Spoken[]): RolloutTree {
  return recoverTalkBeside([], ...calls);
}

/** The same with events that others than the gateway recorded. */
export function recoverTalkBeside(seen: readonly RecordEvent[], ...calls: Spoken[]): RolloutTree {
  const tokens = new Map<string, number>();
  const tokenOf = (message: Json): number => {
    const text = JSON.stringify(message);
    const known = tokens.get(text) ?? tokens.size + 1;
    tokens.set(text, known);
    return known;
  };
  const builder = new RecordBuilder();
  calls.forEach(({ messages, reply, ...rest }, call) => {
    builder.call({
      call,
      start: 10 * call,
      finish: 10 * call + 5,
      tools: ['exec', 'agent'],
      prompt: messages.map(tokenOf),
      reply: reply === null ? null : [tokenOf(reply)],
      messages: { parent: null, kept: 0, appended: messages },
      ...(reply === null ? {} : { parts: (reply as { parts: Json[] }).parts }),
      ...rest,
    });
  });
  builder.events.push(...seen);
  return recoverTree(builder.end().record());
}

/** `from type to` of every edge. */
export function edgesOf(tree: RolloutTree): string[] {
  return tree.edges.map(({ from, to, type }) => `${from} ${type} ${to}`);
}
