import type { RolloutTree } from './types.js';

/** What a controller wants to know of a tree without holding it. */
export interface TreeSummary {
  rolloutId: string;
  calls: number;
  trainedCalls: number;
  /** Sampled tokens, and those of them that train. */
  sampledTokens: number;
  trainedTokens: number;
  /** All tokens of the tree, each stored once. */
  tokens: number;
  nodes: number;
  /** Calls that no later call's prompt passes through. */
  leaves: number;
  edges: Record<string, number>;
  verdict: RolloutTree['verdict'];
  reward: number | null;
  status: RolloutTree['status'];
  /** How many by severity. */
  issues: { fatal: number; warn: number; info: number };
}

export function summarise(tree: RolloutTree): TreeSummary {
  const { nodes } = tree;
  const extended = new Set(nodes.parent_N);
  let sampledTokens = 0;
  let trainedTokens = 0;
  let trainedCalls = 0;
  let leaves = 0;
  for (const call of tree.calls) {
    if (call.actionNode === -1) continue;
    const length = nodes.end_N[call.actionNode]! - nodes.start_N[call.actionNode]!;
    sampledTokens += length;
    if (call.untrained === null) {
      trainedCalls++;
      trainedTokens += length;
    }
    if (!extended.has(call.actionNode)) leaves++;
  }
  const edges: Record<string, number> = {};
  for (const { type } of tree.edges) edges[type] = (edges[type] ?? 0) + 1;
  const issues = { fatal: 0, warn: 0, info: 0 };
  for (const { severity } of tree.issues) issues[severity]++;
  return {
    rolloutId: tree.rolloutId,
    calls: tree.calls.length,
    trainedCalls,
    sampledTokens,
    trainedTokens,
    tokens: tree.tokens_T.length,
    nodes: nodes.kind_N.length,
    leaves,
    edges,
    verdict: tree.verdict,
    reward: tree.reward,
    status: tree.status,
    issues,
  };
}
