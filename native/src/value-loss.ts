import { guarded, lengthOf, promised } from './call.js';
import { loadBinding } from './load-binding.js';

/** T tokens, all arrays of length T. Where `mask_T` is 0 the other arrays are not read and may hold NaN. */
export interface ValueLossInput {
  /** Of the weights being trained. */
  values_T: Float32Array;
  /** At the start of the step, constant. */
  valuesOld_T: Float32Array;
  targets_T: Float32Array;
  /** 0 leaves the token out; any other value (≥ 0) is its weight in the sum. */
  mask_T: Float32Array;
}

export interface ValueLossOptions {
  /** How far a value may move from the old one before the loss stops following it. @default Infinity */
  clip?: number;
  /** What the sum over tokens is divided by. */
  normaliser: number;
}

export interface ValueLossResult {
  loss: number;
  /** d loss / d value; exactly 0 where masked or clipped. */
  gradValues_T: Float32Array;
  stats: {
    /** Share of tokens whose loss is the clipped one. */
    clipfrac: number;
    /** 1 − var(target − value) / var(target); 0 when the targets are all equal. */
    explainedVariance: number;
    tokens: number;
  };
}

/**
 * Arrays for the results instead of new ones, each as long as the tokens and apart from the inputs. Worth it from about a
 * million tokens on: the pages of a new array cost as much as the operator.
 */
export interface ValueLossInto {
  gradValues_T?: Float32Array;
}

/** Tokens from which the copies to a GPU and back are worth it. */
const WORTHWHILE_T = 1 << 20;

/**
 * Clipped value loss and its gradient:
 *
 *   L = ½ Σ_t m_t · max((V_t − y_t)², (clip(V_t, old_t ± clip) − y_t)²) / normaliser
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_OPTION, NATIVE_E_VALUE, NATIVE_E_LOAD, NATIVE_E_DEVICE
 */
export function valueLoss(
  input: ValueLossInput,
  options: ValueLossOptions,
  into?: ValueLossInto,
): ValueLossResult {
  const { binding, backend } = loadBinding(lengthOf(input, 'values_T'), WORTHWHILE_T);
  return guarded(() => binding.valueLoss(input, options, backend, into));
}

/** `valueLoss` off the JavaScript thread: see `promised`. */
export const valueLossAsync = promised(valueLoss);
