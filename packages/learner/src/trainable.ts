import { TreewardError } from '@treeward/base';
import type { PackedTrees } from './types.js';

/** @throws TreewardError LEARNER_E_TOKEN naming the first token that the model has no row for */
export function assertKnownTokens({ tokens_T }: PackedTrees, vocabSize: number): void {
  const at = tokens_T.findIndex((token) => token < 0 || token >= vocabSize);
  if (at < 0) return;
  throw new TreewardError(
    'LEARNER_E_TOKEN',
    `token ${tokens_T[at]} at ${at} of the batch: the model knows ids 0 to ${vocabSize - 1}`,
    {
      data: { at, token: tokens_T[at], vocabSize },
      hints: ['were the rollouts sampled with another tokenizer than the checkpoint has?'],
    },
  );
}

export interface Trainable {
  /** 1 for tokens that may train. */
  mask_T: Uint8Array;
  owned: number;
  trained: number;
  /** Owned, but without a usable advantage, rollout log-probability or temperature, or banned: never trained. */
  unusable: number;
  /** Owned and usable, but sampled by a version that is too old. */
  stale: number;
}

/**
 * Which owned tokens can train. A missing log-probability or advantage leaves a token out; it is never read as 0. The
 * first token of a context has no prediction.
 *
 * @param oldest version below which tokens are too old
 */
export function trainableTokens(batch: PackedTrees, oldest = -Infinity): Trainable {
  const mask_T = new Uint8Array(batch.tokens_T.length);
  const banned = new Set(batch.bannedIds);
  const out = { owned: 0, trained: 0, unusable: 0, stale: 0 };
  forEachRow(batch, (row, from, to) => {
    const version = batch.version_B?.[row] ?? -1;
    const stale = version >= 0 && version < oldest;
    for (let t = from; t < to; t++) {
      if (!batch.owned_T[t]) continue;
      out.owned += 1;
      const usable =
        hasPrediction(batch, row, t) &&
        Number.isFinite(batch.advantages_T[t]) &&
        Number.isFinite(batch.rolloutLogprobs_T[t]) &&
        Number.isFinite(batch.temperature_T[t]) &&
        batch.temperature_T[t]! > 0 &&
        !banned.has(batch.tokens_T[t]!);
      if (!usable) out.unusable += 1;
      else if (stale) out.stale += 1;
      else {
        mask_T[t] = 1;
        out.trained += 1;
      }
    }
  });
  return { mask_T, ...out };
}

/** Whether something comes before a token on its path. */
export const hasPrediction = (batch: PackedTrees, row: number, token: number): boolean => {
  let at = row;
  if (token > batch.rowStart_B1[at]!) return true;
  while ((at = batch.parent_B?.[at] ?? -1) >= 0) {
    if (batch.rowStart_B1[at + 1]! > batch.rowStart_B1[at]!) return true;
  }
  return false;
};

export function forEachRow(batch: PackedTrees, visit: (row: number, from: number, to: number) => void): void {
  for (let row = 0; row + 1 < batch.rowStart_B1.length; row++) {
    visit(row, batch.rowStart_B1[row]!, batch.rowStart_B1[row + 1]!);
  }
}

/** Row of each token. */
export function rowOfToken(batch: PackedTrees): Int32Array {
  const row_T = new Int32Array(batch.tokens_T.length);
  forEachRow(batch, (row, from, to) => row_T.fill(row, from, to));
  return row_T;
}
