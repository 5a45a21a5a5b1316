import assert from 'node:assert/strict';
import type { ReplyPart } from '@treeward/messages';

/** One event as a client reads it. Comments are events without anything. */
export interface Heard {
  event: string | null;
  /** Parsed; what a client gets is JSON of any shape, and every field is asserted. */
  data: any; // eslint-disable-line @typescript-eslint/no-explicit-any
}

/** What a stream told, put together from its small pieces only. */
export interface Told {
  parts: ReplyPart[];
  /** Null after an error. */
  stop: 'stop' | 'tool_calls' | 'length' | null;
  usage: { promptTokens: number; completionTokens: number } | null;
  error: { code: string; message: string } | null;
  /** Signs of life between the opening and the reply. */
  beats: number;
}

/** Every event of a stream; throws at bytes that are none. */
export function heardIn(bytes: Uint8Array): Heard[] {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  assert.ok(text.endsWith('\n\n'), 'the last event is not complete');
  return text
    .slice(0, -2)
    .split('\n\n')
    .map((block): Heard => {
      if (/^: [^\n]*$/.test(block)) return { event: null, data: null };
      const match = /^(?:event: ([^\n]+)\n)?data: ([^\n]+)$/.exec(block);
      assert.ok(match, `no event: ${block}`);
      return { event: match[1] ?? null, data: match[2] === '[DONE]' ? '[DONE]' : JSON.parse(match[2]!) };
    });
}

/** A delta: never empty, and no half of a character at its ends. */
export const whole = (piece: unknown): string => {
  assert.equal(typeof piece, 'string');
  assert.doesNotMatch(piece as string, /\p{Surrogate}/u, 'a character was split');
  assert.notEqual(piece, '', 'an empty delta');
  return piece as string;
};

export const isId = (id: unknown): void => assert.ok(typeof id === 'string' && id !== '', 'no id');
