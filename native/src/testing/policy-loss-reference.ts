import type { PolicyLossInput, PolicyLossOptions } from '../policy-loss.js';

/** Slow, plain, float64: the formula read aloud. Tests only. */
export function policyLossReference(
  input: Record<keyof PolicyLossInput, ArrayLike<number>>,
  options: PolicyLossOptions,
): { loss: number; gradLogp_T: Float64Array } {
  const T = input.logp_T.length;
  const gradLogp_T = new Float64Array(T);
  let sum = 0;
  for (let t = 0; t < T; t++) {
    const mask = input.mask_T[t]!;
    if (mask === 0) continue;
    const clamp = (x: number): number => Math.max(-20, Math.min(20, x));
    const difference = input.logp_T[t]! - input.logpOld_T[t]!;
    const ratio = Math.exp(clamp(difference));
    const clippedRatio = Math.max(1 - options.clipLow, Math.min(1 + options.clipHigh, ratio));
    const advantage = input.advantages_T[t]!;
    const weight = Math.min(
      Math.exp(clamp(input.logpOld_T[t]! - input.logpRollout_T[t]!)),
      options.truncation,
    );
    const surrogate = Math.min(advantage * ratio, advantage * clippedRatio);
    sum -= mask * weight * surrogate;
    const flows = Math.abs(difference) <= 20 && surrogate === advantage * ratio;
    if (flows) gradLogp_T[t] = (-mask * weight * advantage * ratio) / options.normaliser;
  }
  return { loss: sum / options.normaliser, gradLogp_T };
}
