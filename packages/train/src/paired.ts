import { randomStream } from '@treeward/base';
import { mean } from './metrics.js';

export interface PairedDifference {
  n: number;
  before: number;
  after: number;
  difference: number;
  /** 95 % percentile bootstrap over tasks, seeded. */
  low: number;
  high: number;
}

/** The same tasks before and after: the interval is of the mean difference, so task difficulty cancels. */
export function pairedDifference(
  before: readonly number[],
  after: readonly number[],
  seed: number,
  draws = 2000,
): PairedDifference {
  const differences = after.map((value, index) => value - before[index]!);
  const random = randomStream(seed, 'bootstrap');
  const means = Array.from({ length: draws }, () =>
    mean(differences.map(() => random.pick(differences))),
  ).sort((a, b) => a - b);
  return {
    n: differences.length,
    before: mean(before),
    after: mean(after),
    difference: mean(differences),
    low: means[Math.floor(0.025 * draws)]!,
    high: means[Math.floor(0.975 * draws)]!,
  };
}
