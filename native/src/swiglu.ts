import { guarded, lengthOf, promised } from './call.js';
import { loadBinding } from './load-binding.js';

/** N values; both float32, or both bfloat16 as Uint16Array. */
export interface SwigluInput {
  gate_N: Float32Array | Uint16Array;
  up_N: Float32Array | Uint16Array;
}

export interface SwigluBackwardInput extends SwigluInput {
  gradY_N: Float32Array;
}

export interface SwigluGradients {
  gradGate_N: Float32Array;
  gradUp_N: Float32Array;
}

/** Values from which the copies to a GPU and back are worth it. */
const WORTHWHILE = 1 << 22;

/**
 * y = silu(gate) · up with silu(z) = z / (1 + e^−z).
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_LOAD, NATIVE_E_MEMORY, NATIVE_E_DEVICE
 */
export function swiglu(input: SwigluInput): Float32Array {
  const { binding, backend } = loadBinding(lengthOf(input, 'gate_N'), WORTHWHILE);
  return guarded(() => binding.swiglu(input, {}, backend));
}

/** `swiglu` off the JavaScript thread: see `promised`. */
export const swigluAsync = promised(swiglu);

/** Gradients of `swiglu`. The sigmoid is computed again: only gate and up need to be kept. @throws as `swiglu` */
export function swigluBackward(input: SwigluBackwardInput): SwigluGradients {
  const { binding, backend } = loadBinding(lengthOf(input, 'gate_N'), WORTHWHILE);
  return guarded(() => binding.swigluBackward(input, {}, backend));
}

/** `swigluBackward` off the JavaScript thread: see `promised`. */
export const swigluBackwardAsync = promised(swigluBackward);
