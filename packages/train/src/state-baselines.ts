import type { PackedTrees } from '@treeward/learner';
import type { RolloutResult } from '@treeward/rollout';
import type { RolloutTree } from '@treeward/tree-recovery';
import { mean, type Metrics } from './metrics.js';

export interface StateBaselines {
  /** What the workspace was worth when a call of a tree started; null where nobody knows. */
  of: (tree: RolloutTree, call: number) => number | null;
  /** How many calls have one, and what that cost. */
  metrics: Metrics;
}

/** The workspaces that calls found, as graded after the rollouts. @param trees those that train */
export function stateBaselines(
  results: readonly RolloutResult[],
  trees: readonly RolloutTree[],
): StateBaselines {
  const scores = new Map(results.map(({ rolloutId, states }) => [rolloutId, states]));
  const of = (tree: RolloutTree, call: number): number | null =>
    scores.get(tree.rolloutId)?.score_C[tree.calls[call]!.call] ?? null;
  const wanted = trees.flatMap((tree) =>
    tree.calls.flatMap((call, index) => (call.untrained === null ? [of(tree, index)] : [])),
  );
  const known = wanted.filter((score) => score !== null);
  const graded = results.flatMap(({ states }) => states ?? []);
  const sum = (pick: (states: (typeof graded)[number]) => number): number =>
    graded.reduce((all, states) => all + pick(states), 0);
  return {
    of,
    metrics: {
      ...(wanted.length > 0 && { 'baseline/known_frac': known.length / wanted.length }),
      ...(known.length > 0 && { 'baseline/mean': mean(known) }),
      'baseline/late': sum(({ late }) => late),
      'baseline/failed': sum(({ failed }) => failed),
      'baseline/graded': sum((states) => states.graded),
      'baseline/cpu_s': sum(({ cpuSeconds }) => cpuSeconds),
      'time/states': sum(({ ms }) => ms) / 1000,
    },
  };
}

/** The advantage of every call that trains, by tree. */
export function callVotes({
  rowStart_B1,
  owned_T,
  advantages_T,
  rollout_B,
  numRollouts,
}: PackedTrees): number[][] {
  const votes: number[][] = Array.from({ length: numRollouts }, () => []);
  rollout_B.forEach((rollout, b) => {
    const first = rowStart_B1[b]!;
    if (first < rowStart_B1[b + 1]! && owned_T[first] === 1) votes[rollout]!.push(advantages_T[first]!);
  });
  return votes;
}
