import { guarded, lengthOf, promised } from './call.js';
import { loadBinding } from './load-binding.js';

/** T tokens, all arrays of length T. Where `mask_T` is 0 the other arrays are not read and may hold NaN. */
export interface PolicyLossInput {
  /** Log-probability under the weights being trained. */
  logp_T: Float32Array;
  /** Under the weights at the start of the step (the learner's own), constant. */
  logpOld_T: Float32Array;
  /** As recorded when the engine sampled the token, constant. */
  logpRollout_T: Float32Array;
  advantages_T: Float32Array;
  /** 0 leaves the token out; any other value (≥ 0) is its weight in the sum. */
  mask_T: Float32Array;
  /** Under the reference policy, constant. Needed for `kl`. */
  logpRef_T?: Float32Array;
  /** Entropy of the distribution at the token. Needed for `entropyCoef`. */
  entropy_T?: Float32Array;
  /** `gspo`: sequence s is tokens `[sequenceOffset_S1[s], sequenceOffset_S1[s + 1])`; covers all tokens. */
  sequenceOffset_S1?: Int32Array;
}

export interface PolicyLossOptions {
  /** The ratio is clipped to [1 − clipLow, 1 + clipHigh]; clipLow in [0, 1], clipHigh ≥ 0. */
  clipLow: number;
  clipHigh: number;
  /** c in w = min(exp(logpOld − logpRollout), c). `Infinity` = not truncated. To switch the weight off, pass logpOld_T as logpRollout_T. */
  truncation: number;
  /** What the sum over tokens is divided by. */
  normaliser: number;
  /**
   * - `ppo`: max(−A r, −A clip(r)) per token
   * - `cispo`: −A clip(r) logp with the clipped ratio constant: no token loses its gradient
   * - `gspo`: `ppo` with r the geometric mean over the token's sequence; each token keeps its own advantage
   *
   * @default 'ppo'
   */
  objective?: 'ppo' | 'cispo' | 'gspo';
  /** Where A < 0 the loss is at most −A · dualClip (> 1), without gradient beyond. @default Infinity */
  dualClip?: number;
  /**
   * - `truncate`: w as above
   * - `mask`: w = exp(logpOld − logpRollout) within [importanceLow, truncation], 0 outside
   *
   * @default 'truncate'
   */
  importance?: 'truncate' | 'mask';
  /** @default 0 */
  importanceLow?: number;
  /** Estimate of KL(policy ‖ reference) added to the loss, from d = logp − logpRef: d, d²/2, exp(−d) − 1 + d. Not weighted by w. @default 'none' */
  kl?: 'none' | 'k1' | 'k2' | 'k3';
  /** @default 0 */
  klCoef?: number;
  /** `k3` is clamped to this, without gradient beyond (verl: 10). @default Infinity */
  klMax?: number;
  /** The loss falls by entropyCoef · entropy_T. Its gradient, −entropyCoef · mask / normaliser, is left to the caller. @default 0 */
  entropyCoef?: number;
  /** Log-ratios are clamped to ± this and carry no gradient beyond (verl's GSPO: 10). @default 20 */
  logRatioMax?: number;
}

/** Means and fractions are over the tokens with a mask other than 0, each counted once; all 0 when there are none. */
export interface PolicyLossStats {
  /** Mean of (r − 1) − log r with r = exp(logp − logpOld). */
  approxKl: number;
  /** Share of tokens where the clipped branch is the loss, i.e. that carry no gradient because of it. */
  clipfrac: number;
  /** Share of tokens that the dual clip holds. */
  dualClipfrac: number;
  ratioMax: number;
  /** Effective sample size of the truncated weights as a share of the tokens: (Σw)² / (T Σw²), in (0, 1]; 0 when all are 0. */
  ess: number;
  /** Share of tokens whose weight exceeded `truncation`. */
  truncatedFrac: number;
  /** KL(rollout ‖ old), estimated as the mean of (ρ − 1) − log ρ with ρ = exp(logpOld − logpRollout). */
  rolloutKl: number;
  /** Mean of the chosen estimate; 0 without one. */
  refKl: number;
  /** Mean of entropy_T; 0 without it. */
  entropy: number;
  tokens: number;
}

export interface PolicyLossResult {
  loss: number;
  /** d loss / d logp; exactly 0 where masked, clipped, or beyond logRatioMax. */
  gradLogp_T: Float32Array;
  stats: PolicyLossStats;
}

/**
 * Arrays for the results instead of new ones, each as long as the tokens and apart from the inputs. Worth it from about a
 * million tokens on: the pages of a new array cost as much as the operator.
 */
export interface PolicyLossInto {
  gradLogp_T?: Float32Array;
}

/** Tokens from which the copies to a GPU and back are worth it. */
const WORTHWHILE_T = 1 << 20;

/**
 * Clipped policy loss, its gradient and its statistics in one pass:
 *
 *   L = Σ_t m_t · (w_t · max(−A_t r_t, −A_t clip(r_t, 1 − low, 1 + high)) + klCoef · kl_t − entropyCoef · H_t) / normaliser
 *   r = exp(logp − logpOld),  w = min(exp(logpOld − logpRollout), c), both logarithms clamped to ±logRatioMax
 *
 * Deviations worth knowing: the weight multiplies the clipped loss (as verl, TRL and OpenRLHF do) and has no gradient; a
 * ratio exactly on the clip bound counts as unclipped. Inputs are float32 and sums float64 in a fixed order. Intermediates
 * are float32 on a GPU, and on the CPU for `ppo` without `kl` and `entropy_T` (gradients within 1e-6 of the float64 ones,
 * a ratio within 1e-6 of a bound may fall on either side of it); in the CPU's other modes they are float64.
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_OPTION, NATIVE_E_VALUE (NaN or infinity at a token that
 *   counts; what `into` holds is then undefined), each naming the argument; NATIVE_E_LOAD when the addon is not built; NATIVE_E_DEVICE when CUDA fails
 */
export function policyLoss(
  input: PolicyLossInput,
  options: PolicyLossOptions,
  into?: PolicyLossInto,
): PolicyLossResult {
  const { binding, backend } = loadBinding(lengthOf(input, 'logp_T'), WORTHWHILE_T);
  return guarded(() => binding.policyLoss(input, options, backend, into));
}

/** `policyLoss` off the JavaScript thread: see `promised`. */
export const policyLossAsync = promised(policyLoss);
