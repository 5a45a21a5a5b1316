import { TreewardError } from '@treeward/base';

/**
 * How a rollout's advantage comes from the rewards of its group (the rollouts of one task in one harness).
 * - `rloo`: reward − mean of the *other* rollouts' rewards; unbiased.
 * - `grpo`: (reward − group mean) / (population std + eps), as published; biased by the division.
 * - `grpo-no-std`: reward − group mean, which is `rloo` × (n − 1)/n.
 */
export type GroupEstimator = 'rloo' | 'grpo' | 'grpo-no-std';

export interface GroupOptions {
  estimator: GroupEstimator;
  /** Added to the standard deviation. @default 1e-6 */
  eps?: number;
}

/**
 * One advantage per rollout. A null reward (an infrastructure failure, not a reward of 0) is outside its group and gets
 * null. Groups of one and groups of equal rewards get exact zeros.
 *
 * @throws TreewardError LEARNER_E_CREDIT when the lengths differ or a reward is not finite
 */
export function groupAdvantages(
  rewards: readonly (number | null)[],
  groups: readonly string[],
  options: GroupOptions,
): (number | null)[] {
  if (rewards.length !== groups.length) {
    throw new TreewardError('LEARNER_E_CREDIT', `${rewards.length} rewards, but ${groups.length} group keys`);
  }
  const members = new Map<string, number[]>();
  rewards.forEach((reward, i) => {
    if (reward === null) return;
    if (!Number.isFinite(reward)) throw new TreewardError('LEARNER_E_CREDIT', `reward ${i} is ${reward}`);
    const key = groups[i]!;
    const group = members.get(key);
    if (group) group.push(i);
    else members.set(key, [i]);
  });
  const out: (number | null)[] = rewards.map(() => null);
  for (const group of members.values()) {
    const values = group.map((i) => rewards[i]!);
    const advantages = groupOf(values, options);
    group.forEach((i, k) => (out[i] = advantages[k]!));
  }
  return out;
}

function groupOf(values: readonly number[], { estimator, eps = 1e-6 }: GroupOptions): number[] {
  const n = values.length;
  if (values.every((value) => value === values[0])) return values.map(() => 0);
  const mean = values.reduce((a, b) => a + b, 0) / n;
  const centred = values.map((value) => value - mean);
  if (estimator === 'grpo-no-std') return centred;
  if (estimator === 'rloo') return centred.map((x) => (x * n) / (n - 1));
  const std = Math.sqrt(centred.reduce((sum, x) => sum + x * x, 0) / n);
  return centred.map((x) => x / (std + eps));
}
