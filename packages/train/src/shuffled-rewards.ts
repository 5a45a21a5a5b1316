import type { Random } from '@treeward/base';

/**
 * Rewards permuted inside each group: the control of an experiment. Every group keeps its mean and its spread, so whatever the
 * policy still gains does not come from what it did. A rollout without a number stays without one.
 */
export function shuffledRewards(
  rewards: readonly (number | null)[],
  groups: readonly string[],
  random: Random,
): (number | null)[] {
  const out = [...rewards];
  for (const group of new Set(groups)) {
    const members = groups.flatMap((name, index) =>
      name === group && rewards[index] !== null ? [index] : [],
    );
    const values = random.shuffle(members.map((index) => rewards[index]!));
    members.forEach((index, k) => (out[index] = values[k]!));
  }
  return out;
}
