import { adamwCoefficients, type AdamwOptions } from '@treeward/native';
import { composedKernels } from './composed-kernels.js';
import type { Tensor } from './load.js';
import { usableNativeOps, type NativeOps } from './native-ops.js';
import type { Ops } from './ops.js';

/** Rotary positions of a pass: N states at rows of tables [P, h/2]. */
export interface Rotary {
  /** [N], int32 */
  position: Tensor;
  cos: Tensor;
  sin: Tensor;
}

interface AdamMoments {
  m: Tensor;
  v: Tensor;
}

/**
 * The fused steps of the decoder. Inside TensorFlow where Treeward's operators are built, otherwise composed of TensorFlow's
 * own; both give the same values to rounding. `scale` is whatever the matching gradient takes.
 */
export interface Kernels {
  /** sum = x + addend; unit = sum / rms(sum) over the last axis. */
  norm(x: Tensor, eps: number, addend?: Tensor): { unit: Tensor; scale: Tensor; sum: Tensor };
  /** ∂sum from ∂unit, plus `addend`. */
  normGrad(unit: Tensor, scale: Tensor, gradUnit: Tensor, addend?: Tensor): Tensor;
  /** x / rms(x) · gain per head: [N, H, h] and [1, h]. */
  headNorm(x: Tensor, eps: number, gain: Tensor): { y: Tensor; scale: Tensor };
  headNormGrad(x: Tensor, scale: Tensor, gain: Tensor, gradY: Tensor): { gradX: Tensor; gradGain: Tensor };
  /** Turns each head's pairs (i, i + h/2) by its position; `inverse` is the gradient. */
  rope(x: Tensor, rotary: Rotary, inverse?: boolean): Tensor;
  /** silu(gate) · up */
  swiglu(gate: Tensor, up: Tensor): Tensor;
  swigluGrad(gate: Tensor, up: Tensor, gradY: Tensor): { gradGate: Tensor; gradUp: Tensor };
  /** A step of many arrays: new tensors; the old stay the caller's. */
  adamw(
    options: AdamwOptions,
  ): (param: Tensor, grad: Tensor, moments: AdamMoments | undefined) => { param: Tensor } & AdamMoments;
}

const made = new WeakMap<Ops, Kernels>();

/** @param ops whose TensorFlow the kernels run in */
export function kernelsOf(ops: Ops): Kernels {
  let kernels = made.get(ops);
  if (!kernels) {
    const native = usableNativeOps();
    kernels = native ? nativeKernels(ops, native) : composedKernels(ops);
    made.set(ops, kernels);
  }
  return kernels;
}

function nativeKernels(ops: Ops, native: NativeOps): Kernels {
  return {
    norm(x, eps, addend) {
      const { y, scale, sum } = native.rmsNorm(x, eps, addend ? { addend } : {});
      return { unit: y, scale, sum: sum ?? x };
    },
    normGrad: (unit, scale, gradUnit, addend) =>
      native.rmsNormGrad({ unit }, scale, gradUnit, addend ? { addend } : {}).gradX,
    headNorm(x, eps, gain) {
      const { y, scale } = native.rmsNorm(x, eps, { gain });
      return { y, scale };
    },
    headNormGrad(x, scale, gain, gradY) {
      const { gradX, gradGain } = native.rmsNormGrad({ sum: x }, scale, gradY, { gain });
      return { gradX, gradGain: gradGain! };
    },
    rope: (x, { position, cos, sin }, inverse) => native.rope(x, position, { cos, sin }, inverse),
    swiglu: (gate, up) => native.swiglu(gate, up),
    swigluGrad: (gate, up, gradY) => native.swigluGrad(gate, up, gradY),
    adamw(options) {
      const coefficients = ops.tf.tensor1d(adamwCoefficients(options));
      return (param, grad, moments) =>
        native.adamw(
          param,
          grad,
          moments ?? { m: ops.tf.zeros(param.shape), v: ops.tf.zeros(param.shape) },
          coefficients,
        );
    },
  };
}
