import { TreewardError } from '@treeward/base';
import type { RolloutTree } from '@treeward/tree-recovery';
import type { PackedTrees } from '../types.js';
import { packCalls, type PackedTree } from './pack-calls.js';

const ACTION = 1;

export interface PackOptions {
  /**
   * Added to the rollout's advantage on the tokens of one call (index into `tree.calls`): a cost of that call alone.
   * @default none
   */
  callAdvantage?: (tree: RolloutTree, call: number) => number;
  /**
   * What the rollout was worth as it stood when a call started: the grade of the workspace then (`workspace-score`). Known
   * before anything the call samples, so that reward − this is unbiased. It takes the place of the rollout's advantage;
   * null: not known for this call, which keeps it.
   * @default none
   */
  callBaseline?: (tree: RolloutTree, call: number) => number | null;
}

/**
 * Trees as rows for the learner: a row per node from which something sampled is reached, continuing the row of its parent.
 * Each action node is a row and owns its tokens; calls with `untrained` set are context only.
 *
 * @param advantages one per tree; null (or a rejected verdict) leaves the tree out
 * @throws TreewardError LEARNER_E_PACK when lengths differ, or two calls of the batch were sampled with different banned ids
 */
export function packTrees(
  trees: readonly RolloutTree[],
  advantages: readonly (number | null)[],
  options: PackOptions = {},
): PackedTrees {
  if (trees.length !== advantages.length) {
    throw new TreewardError('LEARNER_E_PACK', `${trees.length} trees, but ${advantages.length} advantages`);
  }
  const rowStart: number[] = [0];
  const parent: number[] = [];
  const rollout: number[] = [];
  const version: number[] = [];
  const parts = { tokens: [] as Int32Array[], owned: [] as Uint8Array[], logprobs: [] as Float32Array[] };
  const advantageParts: Float32Array[] = [];
  const temperatureParts: Float32Array[] = [];
  const packed: PackedTree[] = [];
  let banned: readonly number[] | null = null;

  trees.forEach((tree, index) => {
    const advantage = advantages[index];
    if (advantage === null || advantage === undefined || tree.verdict.kind === 'rejected') return;
    const { kind_N, parent_N, start_N, end_N } = tree.nodes;
    const callOf = new Map(tree.calls.map((call, i) => [call.actionNode, i]));
    const needed = leadsToAction(tree);
    const row_N = new Int32Array(kind_N.length).fill(-1);
    for (let node = 0; node < kind_N.length; node++) {
      if (!needed[node]) continue;
      row_N[node] = parent.length;
      const [start, end] = [start_N[node]!, end_N[node]!];
      const callIndex = callOf.get(node);
      const call = callIndex === undefined ? undefined : tree.calls[callIndex];
      const own = kind_N[node] === ACTION && call !== undefined && call.untrained === null;
      if (own) banned = sameBanned(banned, call.bannedIds, tree.rolloutId);
      const baseline = own ? (options.callBaseline?.(tree, callIndex!) ?? null) : null;
      const vote = baseline === null || tree.reward === null ? advantage : tree.reward - baseline;
      const extra = own ? (options.callAdvantage?.(tree, callIndex!) ?? 0) : 0;
      parts.tokens.push(tree.tokens_T.slice(start, end));
      parts.logprobs.push(tree.logprobs_T.slice(start, end));
      parts.owned.push(new Uint8Array(end - start).fill(own ? 1 : 0));
      advantageParts.push(new Float32Array(end - start).fill(own ? vote + extra : 0));
      temperatureParts.push(new Float32Array(end - start).fill(call?.temperature ?? 1));
      rowStart.push(rowStart.at(-1)! + end - start);
      parent.push(parent_N[node]! < 0 ? -1 : row_N[parent_N[node]!]!);
      rollout.push(index);
      version.push(call?.policyVersion ?? -1);
    }
    packed.push({ tree, rollout: index, row_N });
  });
  const T = rowStart.at(-1)!;
  return {
    rowStart_B1: Int32Array.from(rowStart),
    parent_B: Int32Array.from(parent),
    tokens_T: join(new Int32Array(T), parts.tokens),
    owned_T: join(new Uint8Array(T), parts.owned),
    rolloutLogprobs_T: join(new Float32Array(T), parts.logprobs),
    advantages_T: join(new Float32Array(T), advantageParts),
    temperature_T: join(new Float32Array(T), temperatureParts),
    rollout_B: Int32Array.from(rollout),
    version_B: Int32Array.from(version),
    bannedIds: banned ?? [],
    numRollouts: trees.length,
    calls: packCalls(packed, parent.length),
  };
}

/** Nodes that are sampled or have something sampled below them. Parents stand before children. */
function leadsToAction(tree: RolloutTree): Uint8Array {
  const { kind_N, parent_N } = tree.nodes;
  const needed = new Uint8Array(kind_N.length);
  for (let node = kind_N.length - 1; node >= 0; node--) {
    if (kind_N[node] === ACTION) needed[node] = 1;
    if (needed[node] && parent_N[node]! >= 0) needed[parent_N[node]!] = 1;
  }
  return needed;
}

function sameBanned(
  known: readonly number[] | null,
  ids: readonly number[],
  rolloutId: string,
): readonly number[] {
  if (known !== null && known.join() !== ids.join()) {
    throw new TreewardError(
      'LEARNER_E_PACK',
      `rollout ${rolloutId}: a call was sampled with banned ids [${ids.join()}], others of the batch with [${known.join()}]`,
      {
        data: { rolloutId },
        hints: ['one batch is trained under one softmax: pack the rollouts separately'],
      },
    );
  }
  return ids;
}

function join<A extends Int32Array | Uint8Array | Float32Array>(out: A, parts: readonly A[]): A {
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
