import { EMPTY_CONTEXT, type ContextTree } from './context-tree.js';
import type { TreeNodes } from './types.js';

// N nodes, T tokens.
export interface FlatTree {
  tokens_T: Int32Array;
  logprobs_T: Float32Array;
  nodes: TreeNodes;
  /** From a node of the growing tree to its place in the arrays; -1 for the empty context. */
  place: (node: number) => number;
}

/**
 * The finished arrays: nodes in the order in which the given paths first reach them, so that parents come before
 * children and the arrays do not depend on how the tree grew; tokens in the order of their nodes.
 */
export function flatten(tree: ContextTree, pathEnds: readonly number[]): FlatTree {
  const place_N = new Int32Array(tree.size).fill(-1);
  const order: number[] = [];
  let numTokens = 0;
  for (const end of pathEnds) {
    const fresh: number[] = [];
    for (let at = end; at !== EMPTY_CONTEXT && place_N[at] === -1; at = tree.parent[at]!) fresh.push(at);
    for (const node of fresh.reverse()) {
      place_N[node] = order.length;
      order.push(node);
      numTokens += tree.end[node]! - tree.start[node]!;
    }
  }
  const size = order.length;
  const nodes: TreeNodes = {
    kind_N: new Uint8Array(size),
    parent_N: new Int32Array(size),
    start_N: new Int32Array(size),
    end_N: new Int32Array(size),
    depth_N: new Int32Array(size),
  };
  const tokens_T = new Int32Array(numTokens);
  const logprobs_T = new Float32Array(numTokens);
  let at = 0;
  order.forEach((node, n) => {
    const start = tree.start[node]!;
    const end = tree.end[node]!;
    tokens_T.set(tree.store.ids.subarray(start, end), at);
    logprobs_T.set(tree.store.logprobs.subarray(start, end), at);
    const parent = tree.parent[node]!;
    nodes.kind_N[n] = tree.isAction(node) ? 1 : 0;
    nodes.parent_N[n] = parent === EMPTY_CONTEXT ? -1 : place_N[parent]!;
    nodes.start_N[n] = at;
    at += end - start;
    nodes.end_N[n] = at;
    nodes.depth_N[n] = tree.depth[node]!;
  });
  return { tokens_T, logprobs_T, nodes, place: (node) => (node === EMPTY_CONTEXT ? -1 : place_N[node]!) };
}
