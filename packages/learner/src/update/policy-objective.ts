import {
  policyLoss,
  type PolicyLossInput,
  type PolicyLossOptions,
  type PolicyLossResult,
} from '@treeward/native';
import type { TokenGrads, TokenValues } from '../model/token-output.js';
import type { MicroBatch } from '../pack/micro-batches.js';
import type { PackedTrees, PolicyLoss } from '../types.js';

/** What stays the same over an update. T packed tokens. */
export interface PolicyTerms {
  batch: PackedTrees;
  loss: PolicyLoss;
  advantages_T: Float32Array;
  logpOld_T: Float32Array;
  logpRef_T: Float32Array | null;
  /** Weight of each token in the sum: 1, or one over its rollout's trained tokens. */
  weight_T: Float32Array;
  rollout_T: Int32Array;
}

export const lossOptions = (loss: PolicyLoss, normaliser: number): PolicyLossOptions => ({
  clipLow: loss.clipLow,
  clipHigh: loss.clipHigh,
  truncation: loss.truncation ?? Infinity,
  normaliser,
  objective: loss.objective ?? 'ppo',
  dualClip: loss.dualClip ?? Infinity,
  importance: loss.importance === 'mask' ? 'mask' : 'truncate',
  kl: loss.klCoef ? (loss.kl ?? 'k3') : 'none',
  klCoef: loss.klCoef ?? 0,
  entropyCoef: loss.entropyCoef ?? 0,
});

/** Loss and gradients of a micro-batch's draws. For `gspo` they stand rollout after rollout. */
export function policyObjective(
  terms: PolicyTerms,
  normaliser: number,
  values: TokenValues,
  { source_M }: Pick<MicroBatch, 'source_M'>,
): { result: PolicyLossResult; grads: TokenGrads } {
  const { batch, loss } = terms;
  const take = (from: Float32Array): Float32Array => Float32Array.from(source_M, (token) => from[token]!);
  const logpOld_T = take(terms.logpOld_T);
  const mask_T = take(terms.weight_T);
  const input: PolicyLossInput = {
    logp_T: values.logprobs_M,
    logpOld_T,
    logpRollout_T: loss.importance === 'off' ? logpOld_T : take(batch.rolloutLogprobs_T),
    advantages_T: take(terms.advantages_T),
    mask_T,
  };
  if (loss.klCoef && terms.logpRef_T) input.logpRef_T = take(terms.logpRef_T);
  if (loss.entropyCoef) input.entropy_T = values.entropies_M;
  if (loss.objective === 'gspo') input.sequenceOffset_S1 = sequences(source_M, terms.rollout_T);
  const result = policyLoss(input, lossOptions(loss, normaliser));
  const grads: TokenGrads = { gradLogp_M: result.gradLogp_T };
  if (loss.entropyCoef) {
    const coefficient = -loss.entropyCoef / normaliser;
    grads.gradEntropy_M = mask_T.map((weight) => coefficient * weight);
  }
  return { result, grads };
}

function sequences(source_M: Int32Array, rollout_T: Int32Array): Int32Array {
  const offsets = [0];
  source_M.forEach((token, m) => {
    if (m > 0 && rollout_T[token] !== rollout_T[source_M[m - 1]!]) offsets.push(m);
  });
  offsets.push(source_M.length);
  return Int32Array.from(offsets);
}
