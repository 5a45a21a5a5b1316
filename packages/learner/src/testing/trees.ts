import type { CausalOrder, RolloutTree, TreeCall } from '@treeward/tree-recovery';

/** A node of a tree written by hand: its tokens, and whether they were sampled. */
export interface TestNode {
  kind: 0 | 1;
  parent: number;
  tokens: number[];
}

const noOrder = (calls: number): CausalOrder => ({
  offset_C1: new Int32Array(calls + 1),
  successor_L: new Int32Array(0),
  weight_L: new Float32Array(0),
});

export const node = (kind: 'obs' | 'act', parent: number, tokens: number[]): TestNode => ({
  kind: kind === 'act' ? 1 : 0,
  parent,
  tokens,
});

/** A tree in which every action node is a call of the main agent, with what `calls` says of it. */
export function tree(
  nodes: readonly TestNode[],
  calls: Record<number, Partial<TreeCall>> = {},
  causal?: RolloutTree['causal'],
): RolloutTree {
  const ends = nodes.reduce<number[]>(
    (all, node) => [...all, (all[all.length - 1] ?? 0) + node.tokens.length],
    [],
  );
  const actions = nodes.flatMap((node, i) => (node.kind === 1 ? [i] : []));
  return {
    rolloutId: 'r',
    labels: {},
    tokens_T: Int32Array.from(nodes.flatMap((node) => node.tokens)),
    logprobs_T: Float32Array.from(
      nodes.flatMap((node) => node.tokens.map((t) => (node.kind ? -t / 100 : NaN))),
    ),
    nodes: {
      kind_N: Uint8Array.from(nodes, (node) => node.kind),
      parent_N: Int32Array.from(nodes, (node) => node.parent),
      start_N: Int32Array.from(nodes, (node, i) => ends[i]! - node.tokens.length),
      end_N: Int32Array.from(ends),
      depth_N: new Int32Array(nodes.length),
    },
    calls: actions.map((actionNode, call) => ({
      call,
      promptNode: nodes[actionNode]!.parent,
      actionNode,
      role: 'main',
      agent: 0,
      epoch: 0,
      delivery: 'complete',
      policyVersion: 0,
      policyId: 'p',
      temperature: 0.8,
      bannedIds: [0, 1],
      startTime: 0,
      finishTime: 1,
      malformed: false,
      untrained: null,
      ...calls[call],
    })),
    edges: [],
    runs: [],
    epochs: [],
    causal: causal ?? { chain: noOrder(actions.length), lineage: noOrder(actions.length) },
    issues: [],
    verdict: { kind: 'trainable', reason: null },
    reward: 1,
    status: 'completed',
  };
}
