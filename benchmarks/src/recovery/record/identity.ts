import type { CallRole } from '@treeward/tree-recovery';
import type { Behaviour } from '../simulate/behaviour.js';

/** What a harness knows about one of its requests. */
export interface Sender {
  session: string;
  /** Null for the main agent. */
  agent: string | null;
  parent: string | null;
  depth: number;
  role: CallRole;
  /** The first request after a compaction. */
  compacted: boolean;
}

/** Headers by which this harness says who sends a request. Synthetic values in the shape of the real ones. */
export function identityHeaders(
  { harness, identity }: Behaviour,
  { session, agent, parent, role, compacted }: Sender,
): Record<string, string> {
  if (identity === 'none') return {};
  const lineage = identity !== 'session';
  switch (harness) {
    case 'claude-code':
      return {
        'x-claude-code-session-id': session,
        ...(lineage && agent !== null && { 'x-claude-code-agent-id': agent }),
        ...(lineage && parent !== null && { 'x-claude-code-parent-agent-id': parent }),
        ...(identity === 'full' && {
          'x-claude-code-request-class': role === 'side' ? 'auxiliary' : role,
          ...(compacted && { 'x-claude-code-context-compacted': 'auto' }),
        }),
      };
    case 'codex':
      return {
        'session-id': session,
        'thread-id': lineage ? (agent ?? session) : session,
        ...(identity === 'full' && {
          'x-codex-turn-metadata': JSON.stringify({
            request_kind: role === 'compaction' ? 'compact' : 'turn',
            agent_name: agent ?? 'main',
            thread_source: agent === null ? 'user' : 'subagent',
          }),
        }),
      };
    case 'opencode':
      return {
        'x-session-id': lineage ? (agent ?? session) : session,
        ...(lineage && agent !== null && { 'x-parent-session-id': parent ?? session }),
      };
    default:
      return {};
  }
}

/** The line by which OpenClaw's prompts say who they belong to; null for harnesses that have none. */
export function identityLine(
  { harness, identity }: Behaviour,
  { session, agent, depth }: Sender,
): string | null {
  if (harness !== 'openclaw' || identity === 'none') return null;
  const key = agent === null || identity === 'session' ? `explicit:${session}` : `subagent:${agent}`;
  const own = `Runtime: agent=main | session=agent:main:${key} | sessionId=${session}`;
  return depth > 0 && identity === 'full' ? `Subagent context: depth ${depth}/5\n${own}` : own;
}
