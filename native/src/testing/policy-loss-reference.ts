import type { PolicyLossInput, PolicyLossOptions } from '../policy-loss.js';

type Arrays = { [K in keyof PolicyLossInput]: ArrayLike<number> };

/** Slow, plain, float64: the formula read aloud. Tests only. */
export function policyLossReference(
  input: Arrays,
  options: PolicyLossOptions,
): { loss: number; gradLogp_T: Float64Array } {
  const {
    objective = 'ppo',
    dualClip = Infinity,
    importance = 'truncate',
    importanceLow = 0,
    kl = 'none',
    klCoef = 0,
    klMax = Infinity,
    entropyCoef = 0,
    logRatioMax = 20,
  } = options;
  const T = input.logp_T.length;
  const clamp = (x: number): number => Math.max(-logRatioMax, Math.min(logRatioMax, x));
  const difference_T = Float64Array.from({ length: T }, (_, t) => input.logp_T[t]! - input.logpOld_T[t]!);
  if (objective === 'gspo') averageBySequence(difference_T, input);

  const gradLogp_T = new Float64Array(T);
  let sum = 0;
  for (let t = 0; t < T; t++) {
    const mask = input.mask_T[t]!;
    if (mask === 0) continue;
    const [logp, advantage, difference] = [input.logp_T[t]!, input.advantages_T[t]!, difference_T[t]!];
    const ratio = Math.exp(clamp(difference));
    const clipped = Math.max(1 - options.clipLow, Math.min(1 + options.clipHigh, ratio));
    const importanceRatio = Math.exp(clamp(input.logpOld_T[t]! - input.logpRollout_T[t]!));
    const inside = importanceRatio >= importanceLow && importanceRatio <= options.truncation;
    const masked = inside ? importanceRatio : 0;
    const weight = importance === 'mask' ? masked : Math.min(importanceRatio, options.truncation);

    let [loss, grad] = [0, 0];
    if (objective === 'cispo') {
      loss = -advantage * clipped * logp;
      grad = -advantage * clipped;
    } else {
      const pessimistic = Math.max(-advantage * ratio, -advantage * clipped);
      loss = advantage < 0 ? Math.min(pessimistic, -advantage * dualClip) : pessimistic;
      if (loss === -advantage * ratio && Math.abs(difference) <= logRatioMax) grad = -advantage * ratio;
    }
    loss *= weight;
    grad *= weight;

    if (kl !== 'none') {
      const x = input.logpRef_T![t]! - logp;
      const d = clamp(x);
      const k3 = Math.expm1(d) - d;
      const [value, slope] = {
        k1: [-d, 1],
        k2: [(d * d) / 2, -d],
        k3: [Math.min(k3, klMax), k3 > klMax ? 0 : -Math.expm1(d)],
      }[kl] as [number, number];
      loss += klCoef * value;
      if (Math.abs(x) <= logRatioMax) grad += klCoef * slope;
    }
    if (entropyCoef !== 0) loss -= entropyCoef * input.entropy_T![t]!;
    sum += mask * loss;
    gradLogp_T[t] = (mask * grad) / options.normaliser;
  }
  return { loss: sum / options.normaliser, gradLogp_T };
}

function averageBySequence(difference_T: Float64Array, input: Arrays): void {
  const offset_S1 = input.sequenceOffset_S1!;
  for (let s = 0; s + 1 < offset_S1.length; s++) {
    let [sum, count] = [0, 0];
    for (let t = offset_S1[s]!; t < offset_S1[s + 1]!; t++) {
      if (input.mask_T[t] === 0) continue;
      sum += difference_T[t]!;
      count++;
    }
    difference_T.fill(count === 0 ? 0 : sum / count, offset_S1[s]!, offset_S1[s + 1]!);
  }
}
