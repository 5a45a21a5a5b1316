import type { Tensor } from '../tf/load.js';
import type { Ops } from '../tf/ops.js';

/**
 * A value per read state: unit·w + b. `objective` sees the values and answers with their gradient, or null when only
 * values are wanted.
 *
 * @returns ∂unit [U, d], ∂w [1, d], ∂b [1]
 */
export function valueOutput(
  ops: Ops,
  unit: Tensor,
  weights: { value: Tensor; valueBias: Tensor },
  objective: (values_U: Float32Array) => Float32Array | null,
): { dUnit: Tensor; dValue: Tensor; dBias: Tensor } | null {
  const values = ops.add(ops.matMul(unit, weights.value, false, true), weights.valueBias);
  const gradient = objective(values.dataSync() as Float32Array);
  if (!gradient) return null;
  const dValues = ops.tf.tensor(gradient, [gradient.length, 1]);
  return {
    dUnit: ops.matMul(dValues, weights.value),
    dValue: ops.matMul(dValues, unit, true),
    dBias: ops.sum(dValues, [0]),
  };
}
