/** Slow, plain, float64. Tests only. */
export function swigluReference(
  gate_N: ArrayLike<number>,
  up_N: ArrayLike<number>,
  gradY_N?: ArrayLike<number>,
): Record<'y_N' | 'gradGate_N' | 'gradUp_N', Float64Array> {
  const sigmoid = Float64Array.from(gate_N, (z) => 1 / (1 + Math.exp(-z)));
  const gradY = (i: number): number => gradY_N?.[i] ?? 0;
  return {
    y_N: sigmoid.map((s, i) => gate_N[i]! * s * up_N[i]!),
    gradGate_N: sigmoid.map((s, i) => gradY(i) * up_N[i]! * s * (1 + gate_N[i]! * (1 - s))),
    gradUp_N: sigmoid.map((s, i) => gradY(i) * gate_N[i]! * s),
  };
}
