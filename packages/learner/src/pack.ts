import { TreewardError } from '@treeward/base';
import type { RolloutTree } from '@treeward/tree-recovery';
import type { PackedTrees } from './types.js';

const ACTION = 1;

export interface PackOptions {
  /**
   * Added to the rollout's advantage on the tokens of one call (index into `tree.calls`): a cost of that call alone.
   * @default none
   */
  callAdvantage?: (tree: RolloutTree, call: number) => number;
}

/**
 * Trees as rows for the learner. A row is the path from a root to an action node below which nothing was sampled; together
 * the rows hold every action node. Where paths share one, the first row that contains it owns its tokens. Calls with
 * `untrained` set are context only.
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
  const rollout: number[] = [];
  const parts = { tokens: [] as Int32Array[], owned: [] as Uint8Array[], logprobs: [] as Float32Array[] };
  const advantageParts: Float32Array[] = [];
  const temperatureParts: Float32Array[] = [];
  let banned: readonly number[] | null = null;

  trees.forEach((tree, index) => {
    const advantage = advantages[index];
    if (advantage === null || advantage === undefined || tree.verdict.kind === 'rejected') return;
    const { kind_N, start_N, end_N } = tree.nodes;
    const callOf = new Map(tree.calls.map((call, i) => [call.actionNode, i]));
    const taken = new Uint8Array(kind_N.length);
    for (const path of actionPaths(tree)) {
      let length = 0;
      for (const node of path) {
        const size = end_N[node]! - start_N[node]!;
        length += size;
        parts.tokens.push(tree.tokens_T.slice(start_N[node]!, end_N[node]!));
        parts.logprobs.push(tree.logprobs_T.slice(start_N[node]!, end_N[node]!));
        const callIndex = callOf.get(node);
        const call = callIndex === undefined ? undefined : tree.calls[callIndex];
        const trains = kind_N[node] === ACTION && call !== undefined && call.untrained === null;
        const own = trains && !taken[node];
        taken[node] = 1;
        if (own) banned = sameBanned(banned, call.bannedIds, tree.rolloutId);
        const extra = own ? (options.callAdvantage?.(tree, callIndex!) ?? 0) : 0;
        parts.owned.push(new Uint8Array(size).fill(own ? 1 : 0));
        advantageParts.push(new Float32Array(size).fill(own ? advantage + extra : 0));
        temperatureParts.push(new Float32Array(size).fill(call?.temperature ?? 1));
      }
      rowStart.push(rowStart[rowStart.length - 1]! + length);
      rollout.push(index);
    }
  });
  const T = rowStart[rowStart.length - 1]!;
  return {
    rowStart_B1: Int32Array.from(rowStart),
    tokens_T: join(new Int32Array(T), parts.tokens),
    owned_T: join(new Uint8Array(T), parts.owned),
    rolloutLogprobs_T: join(new Float32Array(T), parts.logprobs),
    advantages_T: join(new Float32Array(T), advantageParts),
    temperature_T: join(new Float32Array(T), temperatureParts),
    rollout_B: Int32Array.from(rollout),
    bannedIds: banned ?? [],
    numRollouts: trees.length,
  };
}

/** Root-to-leaf node lists, a leaf being an action with no action below it. Parents stand before children. */
function actionPaths(tree: RolloutTree): number[][] {
  const { kind_N, parent_N } = tree.nodes;
  const N = kind_N.length;
  const actionBelow = new Uint8Array(N);
  for (let node = N - 1; node >= 0; node--) {
    const parent = parent_N[node]!;
    if (parent >= 0 && (kind_N[node] === ACTION || actionBelow[node])) actionBelow[parent] = 1;
  }
  const paths: number[][] = [];
  for (let leaf = 0; leaf < N; leaf++) {
    if (kind_N[leaf] !== ACTION || actionBelow[leaf]) continue;
    const path: number[] = [];
    for (let node = leaf; node >= 0; node = parent_N[node]!) path.push(node);
    paths.push(path.reverse());
  }
  return paths;
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
