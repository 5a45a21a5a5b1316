import { randomStream } from '@treeward/base';
import { mean, quantile } from './mean.js';

export interface Interval {
  estimate: number;
  /** 95 %, percentile method. */
  low: number;
  high: number;
  n: number;
}

export interface BootstrapOptions {
  /** @default 5000 */
  draws?: number;
  /** @default 0 */
  seed?: number | string;
}

/** Interval of a mean over tasks: tasks are drawn with replacement, because other tasks are what a score should speak of. */
export function bootstrapMean(values: readonly number[], options: BootstrapOptions = {}): Interval | null {
  if (values.length === 0) return null;
  const { draws = 5000, seed = 0 } = options;
  const random = randomStream(seed, 'bootstrap');
  const means = Float64Array.from({ length: draws }, () => {
    let sum = 0;
    for (let i = 0; i < values.length; i++) sum += values[random.below(values.length)]!;
    return sum / values.length;
  });
  const sorted = [...means.sort()];
  return {
    estimate: mean(values),
    low: quantile(sorted, 0.025),
    high: quantile(sorted, 0.975),
    n: values.length,
  };
}

/** Interval of the mean difference b − a over the same tasks: a task's difficulty cancels. */
export const bootstrapPaired = (
  pairs: readonly (readonly [number, number])[],
  options: BootstrapOptions = {},
): Interval | null =>
  bootstrapMean(
    pairs.map(([a, b]) => b - a),
    options,
  );
