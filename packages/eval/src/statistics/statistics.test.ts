import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJson } from '@treeward/base';
import { agreement } from './agreement.js';
import { bootstrapMean, bootstrapPaired } from './bootstrap.js';
import { mean, quantile } from './mean.js';
import { passAtK, passHatK } from './pass-k.js';
import { signTest } from './sign-test.js';
import { comparePaired, summarise } from './summarise.js';
import { varianceSplit } from './variance-split.js';

interface Reference {
  variance: { groups: number[][]; task: number; run: number; icc: number };
  pass: { n: number; c: number; k: number; all: number; any: number }[];
  sign: { wins: number; losses: number; p: number }[];
  agreement: { units: (number | null)[][]; alpha: number; kappaFirstTwo: number };
  bootstrap: { scores: number[]; mean: number; low: number; high: number; se: number };
  quantile: { values: number[]; q: [number, number][] };
}
const reference = readJson<Reference>(new URL('__fixtures__/reference.json', import.meta.url).pathname);

describe('against numbers from numpy (__fixtures__/make-reference.py)', () => {
  it('splits the variance of unequal groups as a least-squares fit does', () => {
    const { groups, task, run, icc } = reference.variance;
    const split = varianceSplit(groups)!;
    expect(split.task).toBeCloseTo(task, 12);
    expect(split.run).toBeCloseTo(run, 12);
    expect(split.icc).toBeCloseTo(icc, 12);
  });

  it.each(reference.pass)(
    'pass^$k and pass@$k of $c in $n are the shares over all subsets',
    ({ n, c, k, all, any }) => {
      expect(passHatK(n, c, k)).toBeCloseTo(all, 12);
      expect(passAtK(n, c, k)).toBeCloseTo(any, 12);
    },
  );

  it.each(reference.sign)('sign test of $wins wins and $losses losses', ({ wins, losses, p }) => {
    const pairs = [
      ...Array.from({ length: wins }, () => [0, 1] as const),
      ...Array.from({ length: losses }, () => [1, 0] as const),
    ];
    expect(signTest([...pairs, [0.5, 0.5]])).toMatchObject({ wins, losses, ties: 1 });
    expect(signTest(pairs).p).toBeCloseTo(p, 12);
  });

  it('agrees with the coincidence matrix and the contingency table', () => {
    const { units, alpha, kappaFirstTwo } = reference.agreement;
    expect(agreement(units).alpha).toBeCloseTo(alpha, 12);
    expect(agreement(units.map((unit) => unit.slice(0, 2))).weightedKappa).toBeCloseTo(kappaFirstTwo, 12);
  });

  it('comes to the bootstrap interval of 200,000 draws within a tenth of a standard error', () => {
    const { scores, low, high, se } = reference.bootstrap;
    const interval = bootstrapMean(scores, { draws: 20_000 })!;
    expect(interval.estimate).toBeCloseTo(reference.bootstrap.mean, 12);
    expect(Math.abs(interval.low - low)).toBeLessThan(se / 10);
    expect(Math.abs(interval.high - high)).toBeLessThan(se / 10);
  });

  it.each(reference.quantile.q)('quantile %d', (q, value) => {
    expect(quantile(reference.quantile.values, q)).toBeCloseTo(value, 12);
  });
});

describe('edges', () => {
  it('says nothing where nothing can be said', () => {
    expect(passHatK(2, 2, 3)).toBeNull();
    expect(bootstrapMean([])).toBeNull();
    expect(varianceSplit([[0.5], [0.7]])).toBeNull();
    expect(varianceSplit([[0.5, 0.6]])).toBeNull();
    expect(agreement([[1], [0]])).toEqual({ units: 0, exact: null, alpha: null, weightedKappa: null });
    expect(
      agreement([
        [1, 1],
        [1, 1],
      ]),
    ).toMatchObject({ exact: 1, alpha: null });
    expect(signTest([[0.3, 0.3]]).p).toBe(1);
    expect(signTest([[0.1 + 0.2, 0.3]]).ties).toBe(1);
  });

  it('gives the same interval for the same seed, whatever the order of calls', () => {
    const values = [0.1, 0.9, 0.4, 0.7];
    const first = bootstrapMean(values, { seed: 's' });
    bootstrapMean(values, { seed: 'other' });
    expect(bootstrapMean(values, { seed: 's' })).toEqual(first);
  });

  it('pass^k falls and pass@k rises with k', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.nat(12), (n, passes) => {
        const c = Math.min(n, passes);
        for (let k = 2; k <= n; k++) {
          expect(passHatK(n, c, k)!).toBeLessThanOrEqual(passHatK(n, c, k - 1)! + 1e-12);
          expect(passAtK(n, c, k)!).toBeGreaterThanOrEqual(passAtK(n, c, k - 1)! - 1e-12);
        }
      }),
    );
  });

  it('a paired interval is of the differences: adding the same to both changes nothing', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true })),
          { minLength: 2, maxLength: 8 },
        ),
        (pairs) => {
          const shifted = pairs.map(([a, b]) => [a + 3, b + 3] as const);
          const one = bootstrapPaired(pairs, { draws: 200 })!;
          const two = bootstrapPaired(shifted, { draws: 200 })!;
          expect(two.low).toBeCloseTo(one.low, 9);
          expect(two.high).toBeCloseTo(one.high, 9);
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe('summarise', () => {
  const task = (id: string, ...scores: (number | null)[]) => ({ id, category: '', scores });

  it('a run without a number lowers coverage, not the mean', () => {
    const summary = summarise([task('a', 1, null), task('b', 0, 0.5), task('c', null, null)], 1);
    expect(summary.meanScore!.estimate).toBeCloseTo(mean([1, 0.25]), 12);
    expect(summary).toMatchObject({ tasks: 3, runs: 6, coverage: 2 / 3, runCoverage: 0.5, passRate: 0.5 });
    expect(summary.meanScoreMissingAsZero).toBeCloseTo((0.5 + 0.25 + 0) / 3, 12);
  });

  it('passes at the threshold, not over it, and gives pass^k over the tasks that have k runs', () => {
    const summary = summarise([task('a', 0.8, 0.8), task('b', 0.8, 0.79), task('c', 0.8)], 0.8);
    expect(summary.passHat).toEqual([
      { k: 1, value: (1 + 0.5 + 1) / 3, tasks: 3 },
      { k: 2, value: 0.5, tasks: 2 },
    ]);
  });

  it('compares only tasks that both have a number for', () => {
    const compared = comparePaired(
      [task('a', 0, 0), task('b', 0.5), task('c', null)],
      [task('b', 1), task('a', 1), task('c', 1)],
    );
    expect(compared).toMatchObject({ tasks: 2, sign: { wins: 2, losses: 0, ties: 0, p: 0.5 } });
    expect(compared.difference!.estimate).toBeCloseTo(0.75, 12);
  });

  it('an evaluation of nothing has no mean', () => {
    expect(summarise([], 1)).toMatchObject({ meanScore: null, coverage: 0, passRate: null, passHat: [] });
  });
});
