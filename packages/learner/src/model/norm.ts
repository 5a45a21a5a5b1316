import type { Ops } from '../tf/ops.js';
import type { Tensor } from '../tf/load.js';

/** x / rms(x) over the last axis, without gain (it lives in the next matrix). */
export function normalise(ops: Ops, x: Tensor, eps: number): { unit: Tensor; scale: Tensor } {
  const axis = x.shape.length - 1;
  const scale = ops.rsqrt(ops.add(ops.mean(ops.square(x), axis), ops.constant(eps)));
  return { unit: ops.mul(x, scale), scale };
}

/** ∂x from ∂unit; `dot` = unit·∂unit elementwise, which callers may need as well. */
export function normaliseGrad(ops: Ops, unit: Tensor, scale: Tensor, dUnit: Tensor, dot: Tensor): Tensor {
  const axis = unit.shape.length - 1;
  return ops.mul(ops.sub(dUnit, ops.mul(unit, ops.mean(dot, axis))), scale);
}
