import { guarded, lengthOf, promised } from './call.js';
import { loadBinding } from './load-binding.js';

/** T tokens of H heads of D values, F frequencies (2F ≤ D: the rest of a head passes), P positions. */
export interface RopeInput {
  /** float32, or bfloat16 as Uint16Array. */
  x_THD: Float32Array | Uint16Array;
  /** Rows of the tables. Branches of a tree share positions. */
  position_T: Int32Array;
  /** Of `ropeTables`, or of a scaling of the caller's own. */
  cos_PF: Float32Array;
  sin_PF: Float32Array;
}

export interface RopeOptions {
  heads: number;
  dim: number;
  /** F. */
  frequencies: number;
  /**
   * Which values turn together. `half`: (i, i + F), "rotate half", as Hugging Face has Qwen3 and Llama. `interleaved`:
   * (2i, 2i + 1), as the Llama paper's own weights and GPT-J. @default 'half'
   */
  pairs?: 'half' | 'interleaved';
}

/** Values from which the copies to a GPU and back are worth it. */
const WORTHWHILE = 1 << 22;

/**
 * Cosine and sine of position × frequency (radians per token), in float64 and rounded once; `scale` multiplies both (YaRN's
 * attention factor). Hugging Face multiplies in float32, which at position 32,000 moves an angle by up to 1e-3.
 */
export function ropeTables(
  positions: number,
  frequency_F: ArrayLike<number>,
  scale = 1,
): { cos_PF: Float32Array; sin_PF: Float32Array } {
  const F = frequency_F.length;
  const cos_PF = new Float32Array(positions * F);
  const sin_PF = new Float32Array(positions * F);
  for (let p = 0; p < positions; p++) {
    for (let f = 0; f < F; f++) {
      cos_PF[p * F + f] = scale * Math.cos(p * frequency_F[f]!);
      sin_PF[p * F + f] = scale * Math.sin(p * frequency_F[f]!);
    }
  }
  return { cos_PF, sin_PF };
}

/**
 * Rotary positions: for each pair (a, b) of a head, a' = a cos − b sin, b' = b cos + a sin.
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_OPTION, NATIVE_E_VALUE (a position that is no row of the tables),
 *   NATIVE_E_LOAD, NATIVE_E_MEMORY, NATIVE_E_DEVICE
 */
export function rope(input: RopeInput, options: RopeOptions): Float32Array {
  const { binding, backend } = loadBinding(lengthOf(input, 'x_THD'), WORTHWHILE);
  return guarded(() => binding.rope(input, options, backend));
}

/** `rope` off the JavaScript thread: see `promised`. */
export const ropeAsync = promised(rope);

/** Gradient of `rope`: turns back what `x_THD` holds, the gradient of its result. @throws as `rope` */
export function ropeBackward(input: RopeInput, options: RopeOptions): Float32Array {
  const { binding, backend } = loadBinding(lengthOf(input, 'x_THD'), WORTHWHILE);
  return guarded(() => binding.rope(input, { ...options, direction: 'inverse' }, backend));
}

/** `ropeBackward` off the JavaScript thread: see `promised`. */
export const ropeBackwardAsync = promised(ropeBackward);
