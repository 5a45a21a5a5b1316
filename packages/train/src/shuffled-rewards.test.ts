import fc from 'fast-check';
import { expect, it } from 'vitest';
import { randomStream } from '@treeward/base';
import { shuffledRewards } from './shuffled-rewards.js';

const rollout = fc.record({
  group: fc.constantFrom('a', 'b', 'c'),
  reward: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
});

it('keeps each group’s rewards, and which rollouts have none', () => {
  fc.assert(
    fc.property(fc.array(rollout), fc.integer(), (rollouts, seed) => {
      const groups = rollouts.map(({ group }) => group);
      const rewards = rollouts.map(({ reward }) => reward);
      const shuffled = shuffledRewards(rewards, groups, randomStream(seed));
      const of = (values: readonly (number | null)[], group: string): unknown[] =>
        values.filter((_, index) => groups[index] === group && rewards[index] !== null).sort();
      for (const group of groups) expect(of(shuffled, group)).toEqual(of(rewards, group));
      expect(shuffled.map((value) => value === null)).toEqual(rewards.map((value) => value === null));
    }),
  );
});

it('carries nothing of a rollout into its new reward: over many draws each gets its group’s mean', () => {
  const rewards = [0, 0, 1, 1];
  const sums = [0, 0, 0, 0];
  for (let step = 0; step < 4000; step++)
    shuffledRewards(rewards, ['a', 'a', 'a', 'a'], randomStream(1, step)).forEach(
      (value, index) => (sums[index]! += value!),
    );
  for (const sum of sums) expect(sum / 4000).toBeCloseTo(0.5, 1);
});
