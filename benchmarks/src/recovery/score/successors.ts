import type { CausalOrder, EdgeType, TreeCall } from '@treeward/tree-recovery';
import type { Truth } from '../simulate/truth.js';

/** What follows each call, with weights that add to 1; a call that is not named is a sink. */
export type Successors = ReadonlyMap<number, readonly { to: number; weight: number }[]>;

const CAUSAL: ReadonlySet<EdgeType> = new Set([
  'continue',
  'retry',
  'rollback',
  'compaction',
  'rewrite',
  'spawn',
  'return',
]);

/**
 * The lineage of the true edges. Of several successors only those count that were settled when the first of them started:
 * agents that one reply started, and what else nothing but this call leads to; and branches that left side by side. A
 * true `ambiguous` edge ends the lineage.
 */
export function trueLineage(truth: Truth): Successors {
  const causal = truth.edges.filter(({ type }) => CAUSAL.has(type));
  const ambiguous = new Set(truth.edges.filter(({ type }) => type === 'ambiguous').map(({ from }) => from));
  const parallel = new Set(
    truth.edges
      .filter(({ type }) => type === 'parallel')
      .flatMap(({ from, to }) => [`${from}:${to}`, `${to}:${from}`]),
  );
  const into = new Map<number, Set<number>>();
  for (const { from, to } of causal) into.set(to, (into.get(to) ?? new Set()).add(from));
  const out = new Map<number, Map<number, EdgeType>>();
  for (const { from, to, type } of causal) {
    if (!ambiguous.has(from)) out.set(from, (out.get(from) ?? new Map<number, EdgeType>()).set(to, type));
  }
  const result = new Map<number, { to: number; weight: number }[]>();
  for (const [from, successors] of out) {
    const first = Math.min(...successors.keys());
    const kept = [...successors.keys()].filter((to) => {
      if (to === first || parallel.has(`${first}:${to}`)) return true;
      const spawned = successors.get(first) === 'spawn' || successors.get(to) === 'spawn';
      return spawned && into.get(to)!.size === 1;
    });
    result.set(
      from,
      kept.map((to) => ({ to, weight: 1 / kept.length })),
    );
  }
  return result;
}

/** The order that a recovered tree gives, by call number. */
export function treeLineage(calls: readonly TreeCall[], order: CausalOrder): Successors {
  const result = new Map<number, { to: number; weight: number }[]>();
  calls.forEach(({ call }, position) => {
    const list: { to: number; weight: number }[] = [];
    for (let at = order.offset_C1[position]!; at < order.offset_C1[position + 1]!; at++) {
      list.push({ to: calls[order.successor_L[at]!]!.call, weight: order.weight_L[at]! });
    }
    if (list.length > 0) result.set(call, list);
  });
  return result;
}

/** Equal shares over the children of a tree. */
export function childrenOf(parents: ReadonlyMap<number, number>): Successors {
  const children = new Map<number, number[]>();
  for (const [child, parent] of parents) children.set(parent, [...(children.get(parent) ?? []), child]);
  return new Map(
    [...children].map(([parent, list]) => [parent, list.map((to) => ({ to, weight: 1 / list.length }))]),
  );
}
