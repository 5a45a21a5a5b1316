import type { RolloutTree, TreeCall } from './types.js';

/** Tokens on the path up to and including the node; 0 for no node. */
export function pathLength({ nodes }: RolloutTree, node: number): number {
  return node === -1 ? 0 : nodes.depth_N[node]! + nodes.end_N[node]! - nodes.start_N[node]!;
}

/** All tokens on the path to the end of the node. */
export function pathTokens(tree: RolloutTree, node: number): Int32Array {
  const { parent_N, start_N, end_N, depth_N } = tree.nodes;
  const out = new Int32Array(pathLength(tree, node));
  for (let n = node; n !== -1; n = parent_N[n]!) {
    out.set(tree.tokens_T.subarray(start_N[n], end_N[n]), depth_N[n]);
  }
  return out;
}

export function sampledLength({ nodes }: RolloutTree, { actionNode: n }: TreeCall): number {
  return n === -1 ? 0 : nodes.end_N[n]! - nodes.start_N[n]!;
}

/** Calls whose replies stand on the path of this one's prompt, oldest first. */
export function callsAbove(
  tree: RolloutTree,
  call: TreeCall,
  ownerOf: ReadonlyMap<number, TreeCall>,
): TreeCall[] {
  const out: TreeCall[] = [];
  for (let n = call.promptNode; n !== -1; n = tree.nodes.parent_N[n]!) {
    const owner = tree.nodes.kind_N[n] === 1 ? ownerOf.get(n) : undefined;
    if (owner) out.push(owner);
  }
  return out.reverse();
}
