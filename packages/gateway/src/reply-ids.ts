import { hash } from 'node:crypto';
import type { Dialect, DialectName } from '@treeward/messages';

const PREFIXES: Readonly<Record<DialectName, { reply: string; call: string }>> = {
  'anthropic-messages': { reply: 'msg_', call: 'toolu_' },
  'openai-chat': { reply: 'chatcmpl-', call: 'call_' },
  'openai-responses': { reply: 'resp_', call: 'call_' },
};

const digest = (...labels: readonly (string | number)[]): string =>
  hash('sha256', JSON.stringify(labels)).slice(0, 24);

/** Derived, not drawn: the same rollout with the same seed gives the same bytes. */
export function replyId(rolloutId: string, call: number, dialect: Dialect): string {
  return PREFIXES[dialect.name].reply + digest('reply', rolloutId, call);
}

export function toolCallId(rolloutId: string, call: number, part: number, dialect: Dialect): string {
  return PREFIXES[dialect.name].call + digest('call', rolloutId, call, part);
}
