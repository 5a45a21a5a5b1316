import { guarded, lengthOf, promised } from './call.js';
import { loadBinding } from './load-binding.js';

/**
 * T tokens that count (the caller gathers the hidden states that predict them), D hidden size, V vocabulary. Both matrices are
 * float32, or both bfloat16 as Uint16Array.
 */
export interface LinearLogprobInput {
  hidden_TD: Float32Array | Uint16Array;
  weight_VD: Float32Array | Uint16Array;
  /** Added to the products; −Infinity rules a token out. */
  bias_V?: Float32Array;
  /** The token that was chosen, a row of weight_VD. */
  chosen_T: Int32Array;
  /** Per token, on top of the option. */
  temperature_T?: Float32Array;
}

export interface LinearLogprobOptions {
  /** D. */
  hiddenSize: number;
  /** What logits are divided by. @default 1 */
  temperature?: number;
}

export interface LinearLogprobResult {
  /** −Infinity for a token that the bias rules out. */
  logp_T: Float32Array;
  entropy_T: Float32Array;
  /** Log of the sum of exponentials, for the backward pass. */
  lse_T: Float32Array;
}

export interface LinearLogprobBackwardInput extends LinearLogprobInput {
  /** d loss / d logp. */
  gradLogp_T: Float32Array;
  /** d loss / d entropy. */
  gradEntropy_T: Float32Array;
  /** Of the forward pass. */
  lse_T: Float32Array;
  /** Of the forward pass. */
  entropy_T: Float32Array;
}

export interface LinearLogprobGradients {
  gradHidden_TD: Float32Array;
  gradWeight_VD: Float32Array;
}

/** Multiplications from which the copies to a GPU and back are worth it. */
const WORTHWHILE = 1 << 28;

const work = (input: LinearLogprobInput): number =>
  lengthOf(input, 'chosen_T') * lengthOf(input, 'weight_VD');

/**
 * Log-probability of the chosen token and entropy, from hidden states and vocabulary weights, without the T × V logits:
 *
 *   z_v = (hidden · weight_v + bias_v) / temperature,   logp = z_chosen − lse(z),   entropy = lse(z) − Σ_v p_v z_v
 *
 * Memory grows with T + V, not with T · V. Logits up to ±1e4 and −Infinity in the bias are exact.
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_OPTION, NATIVE_E_VALUE (a chosen token outside the vocabulary, a
 *   temperature that is not finite and positive, NaN or +Infinity in the bias), NATIVE_E_LOAD, NATIVE_E_MEMORY, NATIVE_E_DEVICE
 */
export function linearLogprob(input: LinearLogprobInput, options: LinearLogprobOptions): LinearLogprobResult {
  const { binding, backend } = loadBinding(work(input), WORTHWHILE);
  return guarded(() => binding.linearLogprob(input, options, backend));
}

/** `linearLogprob` off the JavaScript thread: see `promised`. */
export const linearLogprobAsync = promised(linearLogprob);

/** Gradients of `linearLogprob` with respect to hidden states and weights. @throws as `linearLogprob` */
export function linearLogprobBackward(
  input: LinearLogprobBackwardInput,
  options: LinearLogprobOptions,
): LinearLogprobGradients {
  const { binding, backend } = loadBinding(work(input), WORTHWHILE);
  return guarded(() => binding.linearLogprobBackward(input, options, backend));
}

/** `linearLogprobBackward` off the JavaScript thread: see `promised`. */
export const linearLogprobBackwardAsync = promised(linearLogprobBackward);
