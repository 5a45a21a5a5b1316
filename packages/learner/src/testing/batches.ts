import { join } from 'node:path';
import type { PackedTrees } from '../types.js';

export const tinyCheckpoint = join(import.meta.dirname, '..', '__fixtures__', 'tiny-qwen3');
export const goldenFolder = join(import.meta.dirname, '..', '..', '..', '..', 'datasets', 'golden');

/** Rows with a weight (SFT) or advantage per token; the first token of each row is context. */
export function packRows(
  rows: readonly (readonly number[])[],
  advantages: readonly (readonly number[])[],
  more: Partial<PackedTrees> = {},
): PackedTrees {
  const rowStart_B1 = new Int32Array(rows.length + 1);
  rows.forEach((row, b) => (rowStart_B1[b + 1] = rowStart_B1[b]! + row.length));
  const T = rowStart_B1[rows.length]!;
  return {
    rowStart_B1,
    tokens_T: Int32Array.from(rows.flat()),
    owned_T: Uint8Array.from(rows.flatMap((row) => row.map((_, i) => (i ? 1 : 0)))),
    rolloutLogprobs_T: new Float32Array(T).fill(-1),
    advantages_T: Float32Array.from(advantages.flat()),
    temperature_T: new Float32Array(T).fill(1),
    rollout_B: Int32Array.from(rows, (_, b) => b),
    bannedIds: [],
    numRollouts: rows.length,
    ...more,
  };
}

export const tinyRows: readonly (readonly number[])[] = [
  [1, 5, 9, 30, 2, 2, 7],
  [3, 39, 0, 4, 11, 12, 13, 14, 15, 16, 17],
  [8, 8],
  [20, 21, 22, 23, 24],
];

export const constantRows = (
  rows: readonly (readonly number[])[],
  value: (b: number) => number,
): number[][] => rows.map((row, b) => row.map((_, i) => (i ? value(b) : 0)));
