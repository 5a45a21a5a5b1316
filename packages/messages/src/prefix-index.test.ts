import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PrefixIndex, type PrefixMatch } from './prefix-index.js';

interface Stored {
  messages: string[];
  reply: string | null;
}

const sharedPrefix = (a: readonly string[], b: readonly string[]): number => {
  let n = 0;
  while (n < a.length && n < b.length && a[n] === b[n]) n++;
  return n;
};

/** The definition, by looking at every call. */
function naive(calls: readonly Stored[], keys: readonly string[]): Pick<PrefixMatch, 'kept' | 'at'> | null {
  const whole = calls.map(({ messages, reply }) => (reply === null ? messages : [...messages, reply]));
  const kept = Math.max(0, ...whole.map((list) => sharedPrefix(list, keys)));
  if (kept === 0) return null;
  const near = calls.filter((_, i) => sharedPrefix(whole[i]!, keys) === kept);
  const endsAtMessages = near.some(({ messages }) => messages.length === kept);
  const endsAtReply = near.some(({ messages, reply }) => reply !== null && messages.length + 1 === kept);
  if (kept === keys.length && endsAtMessages) return { kept, at: 'messages' };
  return { kept, at: endsAtReply ? 'reply' : endsAtMessages ? 'messages' : 'inside' };
}

const key = fc.constantFrom('a', 'b', 'c');
const stored = fc.record({
  messages: fc.array(key, { minLength: 1, maxLength: 6 }),
  reply: fc.option(key),
});

describe('PrefixIndex', () => {
  it('agrees with a search through all calls, and the call it names has that prefix', () => {
    fc.assert(
      fc.property(fc.array(stored, { maxLength: 12 }), fc.array(key, { maxLength: 8 }), (calls, keys) => {
        const index = new PrefixIndex();
        calls.forEach(({ messages, reply }, call) => {
          index.add(call, messages);
          if (reply !== null) index.addReply(call, reply);
        });
        const match = index.find(keys);
        const expected = naive(calls, keys);
        expect(match && { kept: match.kept, at: match.at }).toEqual(expected);
        if (!match) return;
        const { messages, reply } = calls[match.call]!;
        const whole = reply === null ? messages : [...messages, reply];
        expect(whole.slice(0, match.kept)).toEqual(keys.slice(0, match.kept));
        if (match.at === 'messages') expect(messages.length).toBe(match.kept);
        if (match.at === 'reply') expect(messages.length + 1).toBe(match.kept);
      }),
    );
  });

  it('gives the same from deltas as from whole lists', () => {
    fc.assert(
      fc.property(fc.array(stored, { maxLength: 12 }), fc.array(key, { maxLength: 8 }), (calls, keys) => {
        const whole = new PrefixIndex();
        const delta = new PrefixIndex();
        calls.forEach(({ messages, reply }, call) => {
          const match = delta.find(messages);
          whole.add(call, messages);
          if (match) delta.add(call, messages.slice(match.kept), match);
          else delta.add(call, messages);
          if (reply !== null) {
            whole.addReply(call, reply);
            delta.addReply(call, reply);
          }
        });
        expect(delta.find(keys)).toEqual(whole.find(keys));
        expect(delta.size).toBe(calls.length);
      }),
    );
  });

  it('goes two ways from a clone on, each like an index that was told all of it', () => {
    const put = (index: PrefixIndex, calls: readonly Stored[], from: number): void =>
      calls.forEach(({ messages, reply }, i) => {
        index.add(from + i, messages);
        if (reply !== null) index.addReply(from + i, reply);
      });
    const lists = fc.array(stored, { maxLength: 6 });
    fc.assert(
      fc.property(lists, lists, lists, fc.array(key, { maxLength: 8 }), (before, one, other, keys) => {
        const index = new PrefixIndex();
        put(index, before, 0);
        const clone = index.clone();
        put(index, one, before.length);
        put(clone, other, before.length);
        for (const [made, after] of [[index, one] as const, [clone, other] as const]) {
          const whole = new PrefixIndex();
          put(whole, [...before, ...after], 0);
          expect(made.find(keys)).toEqual(whole.find(keys));
          expect(made.size).toBe(whole.size);
        }
      }),
    );
  });

  it('prefers the newest of equal calls and of equal replies', () => {
    const index = new PrefixIndex();
    for (const call of [0, 1, 2]) index.add(call, ['u']);
    index.addReply(0, 'r');
    index.addReply(2, 'r');
    index.addReply(1, 'r');
    expect(index.find(['u'])).toEqual({ call: 2, kept: 1, at: 'messages' });
    expect(index.find(['u', 'r', 't'])).toEqual({ call: 1, kept: 2, at: 'reply' });
  });

  it('refuses a delta that cannot be', () => {
    const index = new PrefixIndex();
    index.add(0, ['a']);
    expect(() => index.add(1, [], { call: 7, kept: 0 })).toThrow(RangeError);
    expect(() => index.add(1, [], { call: 0, kept: 2 })).toThrow(RangeError);
  });

  it('adds a long conversation from deltas in time linear in its new messages', () => {
    const build = (calls: number): PrefixIndex => {
      const index = new PrefixIndex();
      index.add(0, ['task']);
      index.addReply(0, 'r0');
      for (let call = 1; call < calls; call++) {
        index.add(call, [`t${call}`], { call: call - 1, kept: 2 * call });
        index.addReply(call, `r${call}`);
      }
      return index;
    };
    // 100,000 calls: a cost quadratic in calls would need some 10^10 steps.
    const index = build(100_000);
    expect(index.size).toBe(100_000);
    expect(index.find(['task', 'r0', 't1', 'r1', 'other'])).toEqual({ call: 1, kept: 4, at: 'reply' });
  }, 20_000);
});
