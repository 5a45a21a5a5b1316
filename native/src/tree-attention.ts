import { guarded, lengthOf, promised } from './call.js';
import { loadBinding } from './load-binding.js';

/**
 * Q queries, K keys, H query heads, J key heads, D head size. Keys are tokens packed in depth-first order of their trees, so that
 * a node's subtree is one stretch of tokens. Query q at position p sees key k iff
 *
 * - ancestors: `k <= p < end_K[k]`, or
 * - happens-before: `finish_K[k] < start_Q[q]` and `firstKey_Q[q] <= k < lastKey_Q[q]` (only where those four are given).
 *
 * Operands are all float32, or all bfloat16 as Uint16Array. On a GPU D is 32, 64 or 128.
 */
export interface TreeAttentionInput {
  query_QHD: Float32Array | Uint16Array;
  key_KJD: Float32Array | Uint16Array;
  value_KJD: Float32Array | Uint16Array;
  /**
   * Where a query stands among the keys: a token's own position; for a query that is no token (a call's first value) the
   * last token of its context, or −1 for an empty context.
   */
  position_Q: Int32Array;
  /** End of the subtree of the key's node. */
  end_K: Int32Array;
  /** When the query's call started, as a rank among the calls of its rollout. */
  start_Q?: Int32Array;
  /** When the key's call had finished, in the same ranks; 2³¹ − 1 = never (a side call). */
  finish_K?: Int32Array;
  /** The keys of the query's rollout. */
  firstKey_Q?: Int32Array;
  lastKey_Q?: Int32Array;
}

export interface TreeAttentionOptions {
  heads: number;
  /** Divides `heads`: head h reads key head ⌊h / (heads / keyHeads)⌋. */
  keyHeads: number;
  dim: number;
  /** Of the products before the softmax. @default 1 / √dim */
  scale?: number;
}

export interface TreeAttentionResult {
  /** 0 for a query that sees nothing. */
  output_QHD: Float32Array;
  /** Log of the softmax's denominator, for the backward pass. */
  lse_QH: Float32Array;
}

export interface TreeAttentionBackwardInput extends TreeAttentionInput {
  /** Of the forward pass. */
  output_QHD: Float32Array;
  /** Of the forward pass. */
  lse_QH: Float32Array;
  gradOutput_QHD: Float32Array;
}

export interface TreeAttentionGradients {
  gradQuery_QHD: Float32Array;
  gradKey_KJD: Float32Array;
  gradValue_KJD: Float32Array;
}

/** Multiplications from which the copies to a GPU and back are worth it. */
const WORTHWHILE = 1 << 28;
const CUDA_DIMS = [32, 64, 128];

function choose(input: TreeAttentionInput, options: TreeAttentionOptions): ReturnType<typeof loadBinding> {
  const work = lengthOf(input, 'query_QHD') * lengthOf(input, 'end_K');
  return loadBinding(CUDA_DIMS.includes(options.dim) ? work : 0, WORTHWHILE);
}

/**
 * Attention over packed trees, blockwise: no Q × K matrix is stored, blocks that see nothing are skipped.
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_OPTION, NATIVE_E_VALUE (a position that is no key, a subtree that
 *   ends before its key), NATIVE_E_LOAD, NATIVE_E_MEMORY, NATIVE_E_DEVICE
 */
export function treeAttention(input: TreeAttentionInput, options: TreeAttentionOptions): TreeAttentionResult {
  const { binding, backend } = choose(input, options);
  return guarded(() => binding.treeAttention(input, options, backend));
}

/** `treeAttention` off the JavaScript thread: see `promised`. */
export const treeAttentionAsync = promised(treeAttention);

/** Gradients of `treeAttention` with respect to queries, keys and values. @throws as `treeAttention` */
export function treeAttentionBackward(
  input: TreeAttentionBackwardInput,
  options: TreeAttentionOptions,
): TreeAttentionGradients {
  const { binding, backend } = choose(input, options);
  return guarded(() => binding.treeAttentionBackward(input, options, backend));
}

/** `treeAttentionBackward` off the JavaScript thread: see `promised`. */
export const treeAttentionBackwardAsync = promised(treeAttentionBackward);
