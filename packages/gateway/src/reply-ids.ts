import { createHash } from 'node:crypto';
import type { Dialect } from '@treeward/messages';

const digest = (...labels: readonly (string | number)[]): string =>
  createHash('sha256').update(JSON.stringify(labels)).digest('hex').slice(0, 24);

/** Derived, not drawn: the same rollout with the same seed gives the same bytes. */
export function replyId(rolloutId: string, call: number, dialect: Dialect): string {
  const prefix = dialect.name === 'anthropic-messages' ? 'msg_' : 'chatcmpl-';
  return prefix + digest('reply', rolloutId, call);
}

export function toolCallId(rolloutId: string, call: number, part: number, dialect: Dialect): string {
  const prefix = dialect.name === 'anthropic-messages' ? 'toolu_' : 'call_';
  return prefix + digest('call', rolloutId, call, part);
}
