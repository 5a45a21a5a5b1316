import type { PackedTrees } from './types.js';

export interface Trainable {
  /** 1 for tokens that may train. */
  mask_T: Uint8Array;
  owned: number;
  trained: number;
  /** Owned, but without a usable advantage, rollout log-probability or temperature, or banned: never trained. */
  unusable: number;
}

/**
 * Which owned tokens can train. A missing log-probability or advantage leaves a token out; it is never read as 0. The
 * first token of a row has no prediction.
 */
export function trainableTokens(batch: PackedTrees): Trainable {
  const T = batch.tokens_T.length;
  const mask_T = new Uint8Array(T);
  const first = new Set(batch.rowStart_B1);
  const banned = new Set(batch.bannedIds);
  let owned = 0;
  let trained = 0;
  for (let t = 0; t < T; t++) {
    if (!batch.owned_T[t]) continue;
    owned += 1;
    const usable =
      !first.has(t) &&
      Number.isFinite(batch.advantages_T[t]) &&
      Number.isFinite(batch.rolloutLogprobs_T[t]) &&
      Number.isFinite(batch.temperature_T[t]) &&
      batch.temperature_T[t]! > 0 &&
      !banned.has(batch.tokens_T[t]!);
    if (!usable) continue;
    mask_T[t] = 1;
    trained += 1;
  }
  return { mask_T, owned, trained, unusable: owned - trained };
}

/** Tokens of a row. */
export const rowSpan = (batch: PackedTrees, row: number): [number, number] => [
  batch.rowStart_B1[row]!,
  batch.rowStart_B1[row + 1]!,
];
