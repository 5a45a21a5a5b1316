import { TreewardError, type Random } from '@treeward/base';

/**
 * What a task may be used for is decided by its seed: each split owns one range, so that no choice of run seed can make a
 * training task of a held-out one.
 */
export const SPLITS = ['demonstrate', 'train', 'validate', 'held-out'] as const;
export type Split = (typeof SPLITS)[number];

/** Seeds per split. Split s owns [s·SPLIT_SIZE, (s + 1)·SPLIT_SIZE). */
export const SPLIT_SIZE = 2 ** 28;

/** The n-th seed of a split. @throws TreewardError DATASET_E_SEED for an n outside it */
export function seedOf(split: Split, n: number): number {
  if (!Number.isInteger(n) || n < 0 || n >= SPLIT_SIZE) {
    throw new TreewardError('DATASET_E_SEED', `${n} is not an integer in [0, ${SPLIT_SIZE})`);
  }
  return SPLITS.indexOf(split) * SPLIT_SIZE + n;
}

/** Any seed of a split. */
export function drawSeed(split: Split, random: Random): number {
  return seedOf(split, random.below(SPLIT_SIZE));
}

/** @throws TreewardError DATASET_E_SEED for a seed that belongs to no split */
export function splitOf(seed: number): Split {
  const split = SPLITS[Math.floor(seed / SPLIT_SIZE)];
  if (split === undefined) throw new TreewardError('DATASET_E_SEED', `seed ${seed} belongs to no split`);
  return split;
}
