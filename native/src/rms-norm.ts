import { guarded, lengthOf, promised } from './call.js';
import { loadBinding } from './load-binding.js';

/** R rows of D values; G gains, row r has gain r mod G (heads next to each other with gains of their own). */
export interface RmsNormInput {
  /** float32, or bfloat16 as Uint16Array. */
  x_RD: Float32Array | Uint16Array;
  /** Added to x before the norm (the residual path's new part). */
  addend_RD?: Float32Array;
  /** @default 1 */
  gain_GD?: Float32Array;
}

export interface RmsNormOptions {
  /** D. */
  width: number;
  /** @default 1e-6 */
  eps?: number;
}

export interface RmsNormResult {
  y_RD: Float32Array;
  /** 1 / rms of each row, for the backward pass. */
  scale_R: Float32Array;
  /** x + addend, where there is one. */
  sum_RD?: Float32Array;
}

export interface RmsNormBackwardInput {
  /** What was normalised: x, or the sum where something was added. */
  x_RD?: Float32Array | Uint16Array;
  /** Instead of x: x · scale, which is y where there is no gain. */
  unit_RD?: Float32Array | Uint16Array;
  gain_GD?: Float32Array;
  /** Of the forward pass. */
  scale_R: Float32Array;
  gradY_RD: Float32Array;
  /** Added to the result (the gradient that comes down the residual path). */
  addend_RD?: Float32Array;
}

export interface RmsNormGradients {
  /** With respect to x, and to the forward pass's addend: they are the same. */
  gradX_RD: Float32Array;
  /** Where there is a gain. */
  gradGain_GD?: Float32Array;
}

/** Values from which the copies to a GPU and back are worth it. */
const WORTHWHILE = 1 << 22;

/**
 * Root mean square norm over rows, fused with the sum before it:
 *
 *   s = x + addend,   scale = 1 / √(mean(s²) + eps),   y = s · scale · gain
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_OPTION, NATIVE_E_LOAD, NATIVE_E_MEMORY, NATIVE_E_DEVICE
 */
export function rmsNorm(input: RmsNormInput, options: RmsNormOptions): RmsNormResult {
  const { binding, backend } = loadBinding(lengthOf(input, 'x_RD'), WORTHWHILE);
  return guarded(() => binding.rmsNorm(input, options, backend));
}

/** `rmsNorm` off the JavaScript thread: see `promised`. */
export const rmsNormAsync = promised(rmsNorm);

/**
 * Gradients of `rmsNorm`: with n = x · scale and g = ∂y · gain, ∂x = scale · (g − n · mean(n · g)) + addend, ∂gain = Σ_r ∂y · n.
 *
 * @throws as `rmsNorm`
 */
export function rmsNormBackward(input: RmsNormBackwardInput, options: RmsNormOptions): RmsNormGradients {
  const { binding, backend } = loadBinding(lengthOf(input, 'gradY_RD'), WORTHWHILE);
  return guarded(() => binding.rmsNormBackward(input, options, backend));
}

/** `rmsNormBackward` off the JavaScript thread: see `promised`. */
export const rmsNormBackwardAsync = promised(rmsNormBackward);
