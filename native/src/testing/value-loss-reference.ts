import type { ValueLossInput, ValueLossOptions } from '../value-loss.js';

/** Slow, plain, float64. Tests only. */
export function valueLossReference(
  input: { [K in keyof ValueLossInput]: ArrayLike<number> },
  { clip = Infinity, normaliser }: ValueLossOptions,
): { loss: number; gradValues_T: Float64Array } {
  const gradValues_T = new Float64Array(input.values_T.length);
  let sum = 0;
  for (let t = 0; t < gradValues_T.length; t++) {
    const mask = input.mask_T[t]!;
    if (mask === 0) continue;
    const [value, old, target] = [input.values_T[t]!, input.valuesOld_T[t]!, input.targets_T[t]!];
    const bounded = Math.max(old - clip, Math.min(old + clip, value));
    const [plain, clipped] = [(value - target) ** 2, (bounded - target) ** 2];
    sum += (mask * Math.max(plain, clipped)) / 2;
    if (plain >= clipped) gradValues_T[t] = (mask * (value - target)) / normaliser;
  }
  return { loss: sum / normaliser, gradValues_T };
}
