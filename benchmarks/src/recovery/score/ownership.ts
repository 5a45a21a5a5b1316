import type { RecordInput, RolloutTree } from '@treeward/tree-recovery';
import { recordedPrompts } from '../record/recorded-prompts.js';
import type { Truth } from '../simulate/truth.js';

export interface OwnershipCounts {
  tokens: number;
  right: number;
}

/**
 * Sampled tokens that stand in exactly one action node, their own call's, in full. Asked of the calls whose ids and whose
 * whole prompt the record still holds.
 */
export function scoreOwnership(truth: Truth, record: RecordInput, tree: RolloutTree): OwnershipCounts {
  const held = new Set(recordedPrompts(record).flatMap(({ call, sampled }) => (sampled ? [call] : [])));
  const { kind_N, start_N, end_N } = tree.nodes;
  const owners = new Map<number, number>();
  for (const { actionNode } of tree.calls) owners.set(actionNode, (owners.get(actionNode) ?? 0) + 1);
  const nodes = new Map(tree.calls.map(({ call, actionNode }) => [call, actionNode]));
  const counts = { tokens: 0, right: 0 };
  for (const { call, tokens } of truth.calls) {
    if (tokens.length === 0 || !held.has(call)) continue;
    counts.tokens += tokens.length;
    const node = nodes.get(call) ?? -1;
    if (node === -1 || kind_N[node] !== 1 || owners.get(node) !== 1) continue;
    const own = tree.tokens_T.subarray(start_N[node], end_N[node]);
    if (own.length === tokens.length && own.every((id, index) => id === tokens[index])) {
      counts.right += tokens.length;
    }
  }
  return counts;
}
