import type { RmsNormBackwardInput, RmsNormInput, RmsNormOptions } from '../rms-norm.js';

type Numbers<T> = { [K in keyof T]: ArrayLike<number> };

/** Slow, plain, float64. Tests only; float32 operands. */
export function rmsNormReference(
  input: Numbers<RmsNormInput>,
  { width: D, eps = 1e-6 }: RmsNormOptions,
): Record<'y_RD' | 'scale_R' | 'sum_RD', Float64Array> {
  const sum_RD = Float64Array.from(input.x_RD, (x, i) => x + (input.addend_RD?.[i] ?? 0));
  const R = sum_RD.length / D;
  const scale_R = Float64Array.from({ length: R }, (_, r) => {
    const squares = sum_RD.subarray(r * D, (r + 1) * D).reduce((sum, x) => sum + x * x, 0);
    return 1 / Math.sqrt(squares / D + eps);
  });
  const G = (input.gain_GD?.length ?? D) / D;
  const gain = (i: number): number => input.gain_GD?.[(Math.floor(i / D) % G) * D + (i % D)] ?? 1;
  return { y_RD: sum_RD.map((s, i) => s * scale_R[Math.floor(i / D)]! * gain(i)), scale_R, sum_RD };
}

/** From x itself: `unit_RD` is not looked at. */
export function rmsNormBackwardReference(
  input: Numbers<Omit<RmsNormBackwardInput, 'unit_RD'>> & { x_RD: ArrayLike<number> },
  { width: D }: RmsNormOptions,
): Record<'gradX_RD' | 'gradGain_GD', Float64Array> {
  const R = input.x_RD.length / D;
  const G = (input.gain_GD?.length ?? D) / D;
  const gradX_RD = new Float64Array(R * D);
  const gradGain_GD = new Float64Array(G * D);
  for (let r = 0; r < R; r++) {
    const scale = input.scale_R[r]!;
    const at = (r % G) * D;
    const unit = (d: number): number => input.x_RD[r * D + d]! * scale;
    const g = (d: number): number => input.gradY_RD[r * D + d]! * (input.gain_GD?.[at + d] ?? 1);
    let dot = 0;
    for (let d = 0; d < D; d++) dot += unit(d) * g(d);
    for (let d = 0; d < D; d++) {
      const i = r * D + d;
      gradX_RD[i] = scale * (g(d) - (unit(d) * dot) / D) + (input.addend_RD?.[i] ?? 0);
      gradGain_GD[at + d]! += input.gradY_RD[i]! * unit(d);
    }
  }
  return { gradX_RD, gradGain_GD };
}
