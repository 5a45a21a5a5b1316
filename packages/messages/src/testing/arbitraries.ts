import fc from 'fast-check';
import type { Reply, ReplyPart } from '../types.js';

/** Any text JSON can carry unharmed, with odd but whole characters. */
export const text = fc.string({ unit: 'grapheme', maxLength: 40 });

const json = fc.jsonValue({ maxDepth: 3 });
export const args = fc.dictionary(fc.string({ maxLength: 8 }), json, { maxKeys: 5 });

export const textPart = text.map((value): ReplyPart => ({ type: 'text', text: value }));
export const callPart = fc
  .record({
    id: fc.string({ minLength: 1, maxLength: 6 }),
    name: fc.string({ minLength: 1, maxLength: 8 }),
    args,
  })
  .map(({ id, name, args }): ReplyPart => ({ type: 'tool_call', id, name, arguments: args }));
export const parts = fc.array(fc.oneof(textPart, callPart), { minLength: 1, maxLength: 5 });

export const reply: fc.Arbitrary<Reply> = fc.record({
  id: fc.constant('id-1'),
  model: fc.constant('policy'),
  parts,
  stop: fc.constantFrom('stop', 'tool_calls', 'length'),
  usage: fc.record({ promptTokens: fc.nat(9999), completionTokens: fc.nat(999) }),
});
