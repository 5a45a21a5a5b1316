import { fromNative } from './errors.js';
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
}

export interface PolicyLossOptions {
  /** The ratio is clipped to [1 − clipLow, 1 + clipHigh]; clipLow in [0, 1], clipHigh ≥ 0. */
  clipLow: number;
  clipHigh: number;
  /** c in w = min(exp(logpOld − logpRollout), c). `Infinity` = not truncated. To switch the weight off, pass logpOld_T as logpRollout_T. */
  truncation: number;
  /** What the sum over tokens is divided by. */
  normaliser: number;
}

/** Means and fractions are over the tokens with a mask other than 0, each counted once; all 0 when there are none. */
export interface PolicyLossStats {
  /** Mean of (r − 1) − log r with r = exp(logp − logpOld). */
  approxKl: number;
  /** Share of tokens where the clipped branch is the loss, i.e. that carry no gradient because of it. */
  clipfrac: number;
  ratioMax: number;
  /** Effective sample size of the truncated weights as a share of the tokens: (Σw)² / (T Σw²), in (0, 1]. */
  ess: number;
  /** Share of tokens whose weight was cut to `truncation`. */
  truncatedFrac: number;
  /** KL(rollout ‖ old), estimated as the mean of (ρ − 1) − log ρ with ρ = exp(logpOld − logpRollout). */
  rolloutKl: number;
  tokens: number;
}

export interface PolicyLossResult {
  loss: number;
  /** d loss / d logp; exactly 0 where masked, clipped, or |logp − logpOld| > 20. */
  gradLogp_T: Float32Array;
  stats: PolicyLossStats;
}

/**
 * Clipped policy loss and its gradient:
 *
 *   L = Σ_t m_t · w_t · max(−A_t r_t, −A_t clip(r_t, 1 − low, 1 + high)) / normaliser
 *   r = exp(logp − logpOld),  w = min(exp(logpOld − logpRollout), c), both logarithms clamped to ±20
 *
 * Deviations worth knowing: no dual clip; the weight multiplies the clipped loss (as verl, TRL and OpenRLHF do) and has no
 * gradient; a ratio exactly on the clip bound counts as unclipped. Inputs are float32, every intermediate and every sum is
 * float64, so the gradient is the float64 one rounded once.
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_OPTION, NATIVE_E_VALUE (NaN or infinity at a token that
 *   counts), each naming the argument; NATIVE_E_LOAD when the addon is not built
 */
export function policyLoss(input: PolicyLossInput, options: PolicyLossOptions): PolicyLossResult {
  const binding = loadBinding();
  try {
    return binding.policyLoss(input, options);
  } catch (error) {
    throw fromNative(error);
  }
}
