import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { groupAdvantages, type GroupEstimator } from './group-advantages.js';
import { goldenFolder } from '../testing/batches.js';

interface Case {
  name: string;
  args: { epsilon?: number };
  inputs: { index: (string | number)[]; rewards: number[]; response_mask?: number[][] };
  outputs: { advantages?: number[][]; advantage_per_rollout?: number[] };
}
const { cases } = JSON.parse(readFileSync(join(goldenFolder, 'advantages_outcome.json'), 'utf8')) as {
  cases: Case[];
};

/** The libraries' estimators that mean the same as ours. */
const SAME: [RegExp, GroupEstimator][] = [
  [/numpy_population_std$/, 'grpo'],
  [/compute_grpo_outcome_advantage\/norm_adv_by_std_in_grpo=False/, 'grpo-no-std'],
  [/compute_rloo_outcome_advantage$/, 'rloo'],
];

describe('group advantages against verl and numpy', () => {
  const matching = cases.flatMap((c) => {
    const same = SAME.find(([pattern]) => pattern.test(c.name));
    return same ? [[c.name, c, same[1]] as const] : [];
  });
  expect(matching.length).toBeGreaterThanOrEqual(18);
  it.each(matching)('%s', (name, { args, inputs, outputs }, estimator) => {
    const keys = inputs.index.map(String);
    const got = groupAdvantages(inputs.rewards, keys, { estimator, eps: args.epsilon ?? 0 });
    const tolerance = /equal_group/.test(name) ? 1e-9 : 1e-12;
    got.forEach((advantage, i) => {
      // verl returns the raw reward for a group of one; here it is 0, which the property below pins.
      if (keys.filter((key) => key === keys[i]).length === 1) return expect(advantage).toBe(0);
      const first = inputs.response_mask?.[i]?.indexOf(1) ?? 0;
      const want = outputs.advantage_per_rollout?.[i] ?? outputs.advantages![i]![first]!;
      expect(Math.abs(advantage! - want)).toBeLessThan(tolerance);
    });
  });
});

describe('group advantages', () => {
  const estimators = fc.constantFrom<GroupEstimator[]>('rloo', 'grpo', 'grpo-no-std');

  it('equal rewards and groups of one give exact zeros; null stays out and changes nobody', () => {
    fc.assert(
      fc.property(
        estimators,
        fc.array(
          fc.record({
            reward: fc.option(fc.double({ min: -2, max: 2, noNaN: true })),
            key: fc.constantFrom('a', 'b', 'c'),
          }),
          { maxLength: 12 },
        ),
        fc.double({ min: -2, max: 2, noNaN: true }),
        (estimator, rollouts, constant) => {
          const rewards = rollouts.map((r) => r.reward);
          const keys = rollouts.map((r) => r.key);
          const all = groupAdvantages(rewards, keys, { estimator });
          const present = rollouts.filter((r) => r.reward !== null);
          const without = groupAdvantages(
            present.map((r) => r.reward),
            present.map((r) => r.key),
            { estimator },
          );
          expect(all.filter((_, i) => rewards[i] !== null)).toEqual(without);
          expect(all.every((a, i) => (a === null) === (rewards[i] === null))).toBe(true);
          const equal = groupAdvantages(
            rewards.map((reward) => (reward === null ? null : constant)),
            keys,
            { estimator },
          );
          expect(equal.every((a, i) => a === (rewards[i] === null ? null : 0))).toBe(true);
          const alone = groupAdvantages(
            rewards,
            keys.map((_, i) => String(i)),
            { estimator },
          );
          expect(alone.every((a, i) => a === (rewards[i] === null ? null : 0))).toBe(true);
        },
      ),
    );
  });

  it('sums to zero within a group', () => {
    fc.assert(
      fc.property(
        estimators,
        fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { minLength: 2, maxLength: 9 }),
        (estimator, rewards) => {
          const total = groupAdvantages(
            rewards,
            rewards.map(() => 'g'),
            { estimator, eps: 1 },
          );
          expect(Math.abs(total.reduce<number>((s, a) => s + a!, 0))).toBeLessThan(1e-9);
        },
      ),
    );
  });

  it('refuses lengths that differ and rewards that are no numbers', () => {
    expect(() => groupAdvantages([1], [], { estimator: 'rloo' })).toThrow(/1 rewards, but 0 group keys/);
    expect(() => groupAdvantages([NaN], ['a'], { estimator: 'rloo' })).toThrow(/reward 0 is NaN/);
  });
});
