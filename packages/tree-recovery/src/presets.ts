import { verdictOf } from './verdict.js';
import type { RolloutTree, TreeCall } from './types.js';

/** What a name of a method fixes beside the calls that train. */
export interface CreditSettings {
  /** Baseline over the rollouts of one group (task and harness). */
  estimator: 'rloo' | 'grpo';
  /** Of the advantages of a group. */
  std: 'none' | 'population';
  /** What the summed loss is divided by: planned rollouts × norm_tokens, or each rollout's own trained tokens. */
  normaliser: 'constant' | 'rollout-mean';
  /** Generalised advantages of a critic, where one is used: along which order, and what it sees. */
  critic: { order: 'lineage' | 'chain'; sees: 'history' | 'context'; gamma: number; lambda: number };
}

export interface Preset {
  name: string;
  credit: CreditSettings;
  /**
   * Why a call's tokens do not train under this method, by position in `tree.calls` (null: they do), on top of what is
   * known about the call itself.
   */
  leaveOut(tree: RolloutTree): (string | null)[];
  /** Why the rollout as a whole does not train; null if it may. */
  reject(tree: RolloutTree): string | null;
}

/** Every call of every role but side calls: each sampled token once. */
const treeward: Preset = {
  name: 'treeward',
  credit: {
    estimator: 'rloo',
    std: 'none',
    normaliser: 'constant',
    critic: { order: 'lineage', sees: 'history', gamma: 1, lambda: 1 },
  },
  leaveOut: (tree) => tree.calls.map(({ role }) => (role === 'side' ? 'side call' : null)),
  reject: () => null,
};

/** Leaves of the main agent above which ClawGym II does not use a rollout. */
const MAX_LEAVES = 16;

/** The paper's method: of each epoch of the main agent the path to one leaf. */
const clawgym2: Preset = {
  name: 'clawgym2',
  credit: {
    estimator: 'grpo',
    std: 'population',
    normaliser: 'rollout-mean',
    critic: { order: 'chain', sees: 'context', gamma: 1, lambda: 1 },
  },
  leaveOut(tree) {
    const kept = pathActions(tree, keptLeaves(tree));
    return tree.calls.map((call) => {
      if (call.role !== 'main') return `clawgym2: ${call.role} call`;
      return call.actionNode === -1 || kept.has(call.actionNode)
        ? null
        : 'clawgym2: not on the longest path of its epoch';
    });
  },
  reject(tree) {
    const leaves = mainLeaves(tree).length;
    return leaves > MAX_LEAVES ? `clawgym2: ${leaves} leaves, at most ${MAX_LEAVES} are used` : null;
  },
};

export const presets: Readonly<Record<'treeward' | 'clawgym2', Preset>> = { treeward, clawgym2 };

/** The tree as a method trains it: `untrained` and the verdict say what is left out and why. Edges and tokens stay. */
export function applyPreset(tree: RolloutTree, preset: Preset): RolloutTree {
  const left = preset.leaveOut(tree);
  const calls = tree.calls.map((call, at) => ({ ...call, untrained: call.untrained ?? left[at] ?? null }));
  if (tree.verdict.kind === 'rejected') return { ...tree, calls };
  const reason = preset.reject(tree);
  if (reason !== null) return { ...tree, calls, verdict: { kind: 'rejected', reason } };
  const { reward, status } = tree;
  return {
    ...tree,
    calls,
    verdict: verdictOf({ hasStart: true, calls, reward, verifierError: null, status }),
  };
}

/** Calls of the main agent whose replies stand in no later prompt of it. */
function mainLeaves({ nodes, calls }: RolloutTree): TreeCall[] {
  const inPrompt_N = new Uint8Array(nodes.kind_N.length);
  const main = calls.filter(({ role }) => role === 'main');
  for (const { promptNode } of main) {
    for (let n = promptNode; n !== -1 && inPrompt_N[n] === 0; n = nodes.parent_N[n]!) inPrompt_N[n] = 1;
  }
  return main.filter(({ actionNode }) => actionNode !== -1 && inPrompt_N[actionNode] === 0);
}

/** Of each epoch the leaf with the most sampled tokens on its path; attempts that were only retried are none. */
function keptLeaves(tree: RolloutTree): TreeCall[] {
  const { kind_N, parent_N, start_N, end_N } = tree.nodes;
  // Parents stand before children.
  const sampled_N = new Int32Array(kind_N.length);
  for (let n = 0; n < kind_N.length; n++) {
    const above = parent_N[n] === -1 ? 0 : sampled_N[parent_N[n]!]!;
    sampled_N[n] = above + (kind_N[n] === 1 ? end_N[n]! - start_N[n]! : 0);
  }
  const retried = new Set(tree.edges.filter(({ type }) => type === 'retry').map(({ from }) => from));
  const best = new Map<number, TreeCall>();
  for (const leaf of mainLeaves(tree)) {
    if (retried.has(leaf.call) || leaf.malformed) continue;
    const known = best.get(leaf.epoch);
    if (!known || sampled_N[leaf.actionNode]! >= sampled_N[known.actionNode]!) best.set(leaf.epoch, leaf);
  }
  return [...best.values()];
}

/** Action nodes on the paths to these leaves, their own included. */
function pathActions({ nodes }: RolloutTree, leaves: readonly TreeCall[]): Set<number> {
  const seen = new Set<number>();
  for (const { actionNode } of leaves) {
    for (let n = actionNode; n !== -1 && !seen.has(n); n = nodes.parent_N[n]!) seen.add(n);
  }
  return seen;
}
