import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EMPTY_TOKEN_HASH, extendTokenHash, finishTokenHash, hashTokens } from './token-hash.js';

const ids = fc
  .array(fc.integer({ min: 0, max: 0x7fffffff }), { maxLength: 40 })
  .map((a) => Int32Array.from(a));

describe('hashTokens', () => {
  it('is the same number on every machine and in every version', () => {
    expect(hashTokens(new Int32Array(0))).toBe('2545f4911b873593-0');
    expect(hashTokens(Int32Array.of(1, 2, 3))).toMatchInlineSnapshot(`"5d283d2a04196787-3"`);
  });

  it('can be continued from any position', () => {
    fc.assert(
      fc.property(ids, ids, (a, b) => {
        const state = extendTokenHash(extendTokenHash(EMPTY_TOKEN_HASH, a), b);
        expect(finishTokenHash(state)).toBe(hashTokens(Int32Array.from([...a, ...b])));
      }),
    );
  });

  it('sees a changed, swapped, added or lost id', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 800 }), { minLength: 2, maxLength: 60 }),
        fc.nat(),
        fc.integer({ min: 1, max: 800 }),
        (list, where, by) => {
          const at = where % list.length;
          const next = (at + 1) % list.length;
          const original = hashTokens(Int32Array.from(list));
          const changed = list.with(at, list[at]! + by);
          const swapped = list.with(at, list[next]!).with(next, list[at]!);
          expect(hashTokens(Int32Array.from(changed))).not.toBe(original);
          if (list[at] !== list[next]) expect(hashTokens(Int32Array.from(swapped))).not.toBe(original);
          expect(hashTokens(Int32Array.from([...list, 0]))).not.toBe(original);
          expect(hashTokens(Int32Array.from(list.slice(1)))).not.toBe(original);
        },
      ),
    );
  });
});
