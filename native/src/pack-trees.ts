import { guarded, promised } from './call.js';
import { loadBinding } from './load-binding.js';

/** T tokens in B rows; row b is `tokens_T[start_B[b] .. end_B[b])` and continues row `parent_B[b]`, which stands before it. */
export interface PackTreesInput {
  tokens_T: Int32Array;
  start_B: Int32Array;
  end_B: Int32Array;
  /** −1: a root. */
  parent_B: Int32Array;
  /** Of a token in the loss, 0 = context only. @default all 0 */
  weight_T?: Float32Array;
}

/**
 * Every distinct token once, in depth-first order, parents first: token f sees k iff `k <= f < end_F[k]`.
 *
 * Legend: T given tokens, F distinct tokens.
 */
export interface PackedForest {
  /** Where each given token is found; −1 for one that is in no row. */
  position_T: Int32Array;
  tokens_F: Int32Array;
  /** −1 at a root. */
  parent_F: Int32Array;
  end_F: Int32Array;
  /** Tokens before it on its path: its rotary position. */
  depth_F: Int32Array;
  /** How many given tokens with a weight it stands for. */
  owned_F: Int32Array;
  /** The sum of their weights. */
  weight_F: Float32Array;
}

/** M scored tokens. */
export interface CutForestInput {
  parent_F: Int32Array;
  end_F: Int32Array;
  /** The token of the forest whose state predicts each scored token: `parent_F[position_T[t]]`. */
  predictor_M: Int32Array;
  /** What has the same number stays in one micro-batch (a sequence whose tokens share one ratio). @default paths do */
  group_M?: Int32Array;
}

export interface CutForestOptions {
  /** Distinct tokens of a micro-batch. */
  tokenBudget: number;
  /**
   * What happens to a path that is longer. `widen`: the longest path needs its memory anyway, so every micro-batch may be as
   * large. `alone`: a micro-batch of its own. `refuse`: an error that names the scored token. Nothing is ever cut off.
   *
   * @default 'widen'
   */
  oversize?: 'widen' | 'alone' | 'refuse';
}

/**
 * U micro-batches that together hold every scored token once. Batch u has the scored tokens
 * `order_M[scoredOffset_U1[u] .. scoredOffset_U1[u + 1])` and the forest's tokens `forest_N[tokenOffset_U1[u] .. tokenOffset_U1[u + 1])`.
 */
export interface MicroBatches {
  scoredOffset_U1: Int32Array;
  order_M: Int32Array;
  /** Of each entry of `order_M`, counted from its batch's first token. */
  predictor_M: Int32Array;
  tokenOffset_U1: Int32Array;
  /** Ascending within a batch, closed under parents. */
  forest_N: Int32Array;
  /** As in the forest, counted from the batch's first token. */
  parent_N: Int32Array;
  end_N: Int32Array;
}

/** The part of a RolloutTree that is packed. */
export interface PackableTree {
  tokens_T: Int32Array;
  nodes: { start_N: Int32Array; end_N: Int32Array; parent_N: Int32Array };
}

/** Trees behind each other as one input; the nodes of tree i are rows from `nodeOffset_R1[i]` on. */
export function joinTrees(
  trees: readonly PackableTree[],
): PackTreesInput & { tokenOffset_R1: Int32Array; nodeOffset_R1: Int32Array } {
  const tokenOffset_R1 = new Int32Array(trees.length + 1);
  const nodeOffset_R1 = new Int32Array(trees.length + 1);
  trees.forEach(({ tokens_T, nodes }, r) => {
    tokenOffset_R1[r + 1] = tokenOffset_R1[r]! + tokens_T.length;
    nodeOffset_R1[r + 1] = nodeOffset_R1[r]! + nodes.parent_N.length;
  });
  const tokens_T = new Int32Array(tokenOffset_R1[trees.length]!);
  const rows = nodeOffset_R1[trees.length]!;
  const [start_B, end_B, parent_B] = [new Int32Array(rows), new Int32Array(rows), new Int32Array(rows)];
  trees.forEach((tree, r) => {
    const [token, node] = [tokenOffset_R1[r]!, nodeOffset_R1[r]!];
    tokens_T.set(tree.tokens_T, token);
    const { start_N, end_N, parent_N } = tree.nodes;
    for (let n = 0; n < parent_N.length; n++) {
      start_B[node + n] = token + start_N[n]!;
      end_B[node + n] = token + end_N[n]!;
      parent_B[node + n] = parent_N[n]! < 0 ? -1 : node + parent_N[n]!;
    }
  });
  return { tokens_T, start_B, end_B, parent_B, tokenOffset_R1, nodeOffset_R1 };
}

/**
 * Merges rows into a trie: tokens with equal tokens all the way from their roots are one, whichever branches, epochs or rollouts
 * they belong to. Always on the CPU.
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_VALUE (a parent that is not before its row, a stretch outside the
 *   tokens, a token in two rows, a negative id, a weight that is not finite), NATIVE_E_LOAD, NATIVE_E_MEMORY
 */
export function packTrees(input: PackTreesInput): PackedForest {
  const { binding } = loadBinding(0, 1);
  return guarded(() => binding.packTrees(input, {}));
}

/** `packTrees` off the JavaScript thread: see `promised`. */
export const packTreesAsync = promised(packTrees);

/**
 * Cuts a forest into micro-batches within a token budget: whole paths in depth-first order, so that neighbours share their trunk
 * and only what several micro-batches need is computed more than once.
 *
 * @throws NativeError NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_OPTION, NATIVE_E_VALUE (a forest that is not in depth-first order, a
 *   predictor outside it, a path over the budget with `refuse`), NATIVE_E_LOAD, NATIVE_E_MEMORY
 */
export function cutForest(input: CutForestInput, options: CutForestOptions): MicroBatches {
  const { binding } = loadBinding(0, 1);
  return guarded(() => binding.cutForest(input, options));
}

/** `cutForest` off the JavaScript thread: see `promised`. */
export const cutForestAsync = promised(cutForest);
