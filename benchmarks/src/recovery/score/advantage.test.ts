import { describe, expect, it } from 'vitest';
import type { Truth } from '../simulate/truth.js';
import { advantagesAlong, wrongShare } from './advantage.js';
import { childrenOf, trueLineage } from './successors.js';

const values = new Map([
  [0, Float64Array.of(0.5, 0.6)],
  [1, Float64Array.of(0.4)],
  [2, Float64Array.of(0.7, 0.8)],
]);
const chain = childrenOf(
  new Map([
    [1, 0],
    [2, 1],
  ]),
);

describe('advantagesAlong', () => {
  it('is R - V at lambda 1, whatever the order', () => {
    for (const order of [
      chain,
      childrenOf(
        new Map([
          [1, 0],
          [2, 0],
        ]),
      ),
    ]) {
      const advantages = advantagesAlong(order, values, 1, 1);
      for (const [call, value_T] of values) {
        advantages.get(call)!.forEach((a, t) => expect(a).toBeCloseTo(1 - value_T[t]!, 12));
      }
    }
  });

  it('is the difference to the next value at lambda 0, across calls too', () => {
    const advantages = advantagesAlong(chain, values, 1, 0);
    expect([...advantages.get(0)!]).toEqual([0.6 - 0.5, 0.4 - 0.6]);
    expect([...advantages.get(2)!]).toEqual([0.8 - 0.7, 1 - 0.8]);
  });

  it('passes through a call that sampled nothing', () => {
    const empty = new Map([...values, [1, new Float64Array(0)] as const]);
    expect(advantagesAlong(chain, empty, 1, 0).get(0)![1]).toBeCloseTo(0.7 - 0.6);
  });
});

it('wrongShare is 0 for the truth, 1 for the opposite, and counts tokens that only one side trains', () => {
  const right = advantagesAlong(chain, values, 1, 0.95);
  const opposite = new Map([...right].map(([call, list]) => [call, list.map((a) => -a)]));
  expect(wrongShare(right, right)).toBe(0);
  expect(wrongShare(right, opposite)).toBe(1);
  const extra = new Map([...right, [9, Float64Array.of(100)] as const]);
  expect(wrongShare(right, extra)).toBeGreaterThan(0.9);
});

describe('trueLineage', () => {
  const truthOf = (...edges: [number, number, Truth['edges'][number]['type']][]): Truth => ({
    calls: [],
    edges: edges.map(([from, to, type]) => ({ from, to, type })),
  });
  const to = (truth: Truth, from: number): number[] =>
    (trueLineage(truth).get(from) ?? []).map((one) => one.to);

  it('leads into all agents one reply started, and from their ends into the parent', () => {
    const truth = truthOf(
      [0, 1, 'spawn'],
      [0, 2, 'spawn'],
      [0, 3, 'continue'],
      [1, 3, 'return'],
      [2, 3, 'return'],
    );
    expect(to(truth, 0)).toEqual([1, 2]);
    expect(to(truth, 1)).toEqual([3]);
  });

  it('goes on beside a background agent', () => {
    expect(to(truthOf([0, 1, 'continue'], [0, 2, 'spawn'], [2, 3, 'return'], [1, 3, 'continue']), 0)).toEqual(
      [1, 2],
    );
  });

  it('gives a successor that came later no edge, branches side by side one each, and ends at `ambiguous`', () => {
    expect(to(truthOf([0, 1, 'continue'], [0, 5, 'continue']), 0)).toEqual([1]);
    expect(to(truthOf([0, 1, 'continue'], [0, 2, 'continue'], [1, 2, 'parallel']), 0)).toEqual([1, 2]);
    expect(to(truthOf([0, 1, 'ambiguous'], [0, 2, 'continue']), 0)).toEqual([]);
  });
});
