import { canonicalKey, type Message } from '@treeward/messages';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { adapters } from '../registry.js';
import { assistant, conversation } from '../testing/conversations.js';
import { canonicaliser } from './canonicaliser.js';

describe.each(adapters.map((adapter) => [adapter.name, adapter] as const))(
  'canonicalise of %s',
  (_, adapter) => {
    const { canonicalise } = adapter;

    it('is idempotent and deterministic, and leaves its input alone', () => {
      fc.assert(
        fc.property(conversation, (messages) => {
          const before = structuredClone(messages);
          const once = canonicalise(messages);
          expect(canonicalise(once)).toEqual(once);
          expect(canonicalise(messages)).toEqual(once);
          expect(messages).toEqual(before);
        }),
        { numRuns: 1000 },
      );
    });

    it('only appends when a conversation grows', () => {
      fc.assert(
        fc.property(conversation, fc.nat(10), (messages, cut) => {
          const short = canonicalise(messages.slice(0, cut));
          expect(canonicalise(messages).slice(0, short.length)).toEqual(short);
        }),
      );
    });

    it('gives a reply the same key alone and in its conversation', () => {
      fc.assert(
        fc.property(conversation, assistant, (messages, reply) => {
          const inside = canonicalise([...messages, reply]).at(-1)!;
          expect(canonicalKey(canonicalise([reply])[0]!)).toBe(canonicalKey(inside));
        }),
      );
    });

    it('drops system messages wherever they stand', () => {
      const user: Message = { role: 'user', text: 'Go.' };
      const system: Message = { role: 'system', text: 'You are a harness.' };
      expect(canonicalise([system, user, system])).toEqual([user]);
    });
  },
);

describe('canonicaliser', () => {
  const canonicalise = canonicaliser();

  it('numbers calls and their results, whatever ids the harness gives', () => {
    const turn = (callId: string): Message[] => [
      { role: 'assistant', parts: [{ type: 'tool_call', id: callId, name: 'read', arguments: {} }] },
      { role: 'tool', callId, text: callId },
    ];
    const result = canonicalise([
      ...turn('toolu_9'),
      ...turn('toolu_9'),
      { role: 'tool', callId: 'x', text: '' },
    ]);
    const ids = result.map((m) => (m.role === 'tool' ? m.callId : m.role === 'assistant' && m.parts));
    expect(ids[1]).toBe('#0');
    expect(ids[3]).toBe('#1');
    expect(ids[4]).toBe('#?');
  });

  it('drops a user message that was nothing but a long reminder', () => {
    const text = `<system-reminder>${'x'.repeat(200)}</system-reminder>\n`;
    expect(canonicalise([{ role: 'user', text }])).toEqual([]);
  });
});
