import { guarded, lengthOf, promised } from './call.js';
import { loadBinding } from './load-binding.js';

/** N values each. */
export interface AdamwArrays {
  /** Written. */
  param_N: Float32Array;
  grad_N: Float32Array;
  /** First moment. Written. */
  m_N: Float32Array;
  /** Second moment. Written. */
  v_N: Float32Array;
}

export interface AdamwOptions {
  lr: number;
  betas: readonly [number, number];
  eps: number;
  /** Decoupled: multiplies the parameter by 1 − lr · weightDecay. @default 0 */
  weightDecay?: number;
  /** 1 for the first step. */
  step: number;
  /** What gradients are multiplied by first: the factor of global-norm clipping. @default 1 */
  gradScale?: number;
}

/** Values from which the copies to a GPU and back are worth it. */
const WORTHWHILE = 1 << 22;

/**
 * What the kernel takes, in its order: β₁, 1 − β₁, β₂, 1 − β₂, lr / (1 − β₁ᵗ), 1 / √(1 − β₂ᵗ), eps, 1 − lr · decay, gradient scale.
 * Computed in float64 and rounded once each: 1 − β of a rounded β would be off by 5e-5 at 0.999.
 */
export function adamwCoefficients(options: AdamwOptions): Float32Array {
  const {
    lr,
    betas: [beta1, beta2],
    eps,
    weightDecay = 0,
    step,
    gradScale = 1,
  } = options;
  return Float32Array.of(
    beta1,
    1 - beta1,
    beta2,
    1 - beta2,
    lr / (1 - beta1 ** step),
    1 / Math.sqrt(1 - beta2 ** step),
    eps,
    1 - lr * weightDecay,
    gradScale,
  );
}

/**
 * One AdamW step in place, as torch.optim.AdamW: bias-corrected moments, decoupled decay.
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_OPTION (a coefficient that is not finite, a β outside [0, 1), a step
 *   below 1), NATIVE_E_LOAD, NATIVE_E_MEMORY, NATIVE_E_DEVICE
 */
export function adamw(arrays: AdamwArrays, options: AdamwOptions): void {
  const { binding, backend } = loadBinding(lengthOf(arrays, 'param_N'), WORTHWHILE);
  const coefficients = adamwCoefficients(options);
  return guarded(() => binding.adamw(arrays, { coefficients }, backend));
}

/** `adamw` off the JavaScript thread: see `promised`. */
export const adamwAsync = promised(adamw);
