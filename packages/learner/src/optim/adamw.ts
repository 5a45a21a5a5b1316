import type { Ops } from '../tf/ops.js';
import type { Tensor } from '../tf/load.js';

export interface AdamMoments {
  m: Tensor;
  v: Tensor;
}

export interface AdamStep {
  lr: number;
  betas: readonly [number, number];
  eps: number;
  weightDecay: number;
  /** 1 for the first step. */
  step: number;
}

/** One AdamW step (decoupled decay, bias-corrected) of one array. New tensors; the old ones stay the caller's. */
export function adamwStep(
  ops: Ops,
  param: Tensor,
  grad: Tensor,
  moments: AdamMoments | undefined,
  { lr, betas: [beta1, beta2], eps, weightDecay, step }: AdamStep,
): { param: Tensor } & AdamMoments {
  const s = (value: number): Tensor => ops.tf.scalar(value);
  const gradPart = ops.mul(grad, s(1 - beta1));
  const squarePart = ops.mul(ops.square(grad), s(1 - beta2));
  const m = moments ? ops.add(ops.mul(moments.m, s(beta1)), gradPart) : gradPart;
  const v = moments ? ops.add(ops.mul(moments.v, s(beta2)), squarePart) : squarePart;
  const root = ops.mul(ops.sqrt(v), s(1 / Math.sqrt(1 - beta2 ** step)));
  const move = ops.div(ops.mul(m, s(lr / (1 - beta1 ** step))), ops.add(root, s(eps)));
  const decayed = weightDecay === 0 ? param : ops.mul(param, s(1 - lr * weightDecay));
  return { param: ops.sub(decayed, move), m, v };
}
