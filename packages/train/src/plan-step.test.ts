import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { spreadHarnesses } from './plan-step.js';

describe('spreadHarnesses', () => {
  it('interleaves by share', () => {
    expect(spreadHarnesses({ a: 2, b: 1 })).toEqual(['a', 'b', 'a']);
    expect(spreadHarnesses({ a: 5, b: 1 }, 12).filter((name) => name === 'b')).toHaveLength(2);
  });

  it('gives each harness its count exactly, whatever the counts', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.nat(9)), (counts) => {
        const given = spreadHarnesses(counts);
        for (const [name, count] of Object.entries(counts))
          expect(given.filter((other) => other === name)).toHaveLength(count);
      }),
    );
  });
});
