import type { RolloutTree } from '@treeward/tree-recovery';
import type { PackedCalls } from '../types.js';

/** A finish that never comes. */
export const NEVER = 2 ** 31 - 1;

/** One packed tree: which of the batch's rows its nodes became (−1: left out). */
export interface PackedTree {
  tree: RolloutTree;
  rollout: number;
  row_N: Int32Array;
}

/**
 * What a critic needs of the packed rollouts' calls: their tokens, when they started and finished, and what led to what.
 *
 * @param rows rows of the batch
 */
export function packCalls(packed: readonly PackedTree[], rows: number): PackedCalls {
  const total = packed.reduce((sum, { tree }) => sum + tree.calls.length, 0);
  const calls: PackedCalls = {
    callOffset_R1: new Int32Array(packed.length + 1),
    rollout_R: Int32Array.from(packed, ({ rollout }) => rollout),
    reward_R: Float32Array.from(packed, ({ tree }) => tree.reward ?? NaN),
    action_C: new Int32Array(total).fill(-1),
    start_C: new Int32Array(total),
    call_B: new Int32Array(rows).fill(-1),
    finish_C: new Int32Array(total).fill(NEVER),
    chain: joined(packed, 'chain', total),
    lineage: joined(packed, 'lineage', total),
  };
  let at = 0;
  packed.forEach(({ tree, row_N }, r) => {
    const rank = ranks(tree);
    const side = (i: number): number => (tree.calls[i]!.role === 'side' ? 1 : 0);
    const byStart = tree.calls.map((_, i) => i);
    byStart.sort((a, b) => side(a) - side(b) || rank.start(a) - rank.start(b) || a - b);
    tree.calls.forEach((call, i) => {
      const c = at + i;
      calls.start_C[c] = rank.start(i);
      if (call.role !== 'side') calls.finish_C[c] = rank.finish(i);
      if (call.actionNode >= 0) calls.action_C[c] = row_N[call.actionNode]!;
    });
    // A row belongs to the first call whose context it is part of (side calls aside): it was known then.
    for (const i of byStart) {
      const { actionNode, promptNode } = tree.calls[i]!;
      for (let node = actionNode >= 0 ? actionNode : promptNode; node >= 0;) {
        const row = row_N[node]!;
        if (row >= 0 && calls.call_B[row] === -1) calls.call_B[row] = at + i;
        node = tree.nodes.parent_N[node]!;
      }
    }
    at += tree.calls.length;
    calls.callOffset_R1[r + 1] = at;
  });
  return calls;
}

/**
 * Times as ranks in which `finish < start` means "had finished before". A finish and a start at one time are in that order:
 * a harness answers at once, and the clock has steps.
 */
function ranks({ calls }: RolloutTree): { start: (i: number) => number; finish: (i: number) => number } {
  const times = [...new Set(calls.flatMap(({ startTime, finishTime }) => [startTime, finishTime]))];
  times.sort((a, b) => a - b);
  const place = new Map(times.map((time, k) => [time, k]));
  return {
    start: (i) => 2 * place.get(calls[i]!.startTime)! + 1,
    finish: (i) => 2 * place.get(calls[i]!.finishTime)!,
  };
}

function joined(
  packed: readonly PackedTree[],
  order: 'chain' | 'lineage',
  total: number,
): PackedCalls['chain'] {
  const links = packed.reduce((sum, { tree }) => sum + tree.causal[order].successor_L.length, 0);
  const successorOffset_C1 = new Int32Array(total + 1);
  const successor_L = new Int32Array(links);
  const weight_L = new Float32Array(links);
  let [call, link] = [0, 0];
  for (const { tree } of packed) {
    const { offset_C1, successor_L: successors, weight_L: weights } = tree.causal[order];
    const [firstCall, firstLink] = [call, link];
    for (let c = 0; c < tree.calls.length; c++) {
      call++;
      successorOffset_C1[call] = firstLink + offset_C1[c + 1]!;
    }
    successors.forEach((s, l) => {
      successor_L[firstLink + l] = firstCall + s;
      weight_L[firstLink + l] = weights[l]!;
    });
    link += successors.length;
  }
  return { successorOffset_C1, successor_L, weight_L };
}
