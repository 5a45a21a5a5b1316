import type { RopeInput, RopeOptions } from '../rope.js';

/** Slow, plain, float64. Tests only; float32 operands. */
export function ropeReference(
  input: { [K in keyof RopeInput]: ArrayLike<number> },
  { heads: H, dim: D, frequencies: F, pairs = 'half' }: RopeOptions,
  inverse = false,
): Float64Array {
  const { x_THD, position_T, cos_PF, sin_PF } = input;
  const y_THD = Float64Array.from(x_THD);
  for (let t = 0; t < position_T.length; t++) {
    for (let h = 0; h < H; h++) {
      for (let f = 0; f < F; f++) {
        const at = (t * H + h) * D;
        const [i, j] = pairs === 'half' ? [at + f, at + f + F] : [at + 2 * f, at + 2 * f + 1];
        const cos = cos_PF[position_T[t]! * F + f]!;
        const sin = sin_PF[position_T[t]! * F + f]! * (inverse ? -1 : 1);
        y_THD[i] = x_THD[i]! * cos - x_THD[j]! * sin;
        y_THD[j] = x_THD[j]! * cos + x_THD[i]! * sin;
      }
    }
  }
  return y_THD;
}
