import type { CausalOrder, EdgeType, RolloutTree, TreeCall, TreeEdge } from './types.js';

// C calls, L links.

/** Edges that say "what this call did is why that call came about". `parallel` links siblings and is no cause. */
const CAUSAL: ReadonlySet<EdgeType> = new Set([
  'continue',
  'retry',
  'rollback',
  'compaction',
  'rewrite',
  'spawn',
  'return',
]);

export function isCausal(type: EdgeType): boolean {
  return CAUSAL.has(type);
}

/** What an order needs of a call. */
export type OrderedCall = Pick<TreeCall, 'call' | 'role'>;

/** Both orders over `calls`, which stand in the order of their arrival (causes before effects). */
export function causalOrders(
  calls: readonly OrderedCall[],
  edges: readonly OrderedEdge[],
): RolloutTree['causal'] {
  return { chain: chainOrder(calls), lineage: lineageOrder(calls, edges) };
}

/** Without a confidence an edge counts as certain. */
export type OrderedEdge = Pick<TreeEdge, 'from' | 'to' | 'type'> & Partial<Pick<TreeEdge, 'confidence'>>;

/** An edge that is likelier wrong than right is as good as an ambiguous one. */
const DOUBTFUL = 0.5;

/** Every call leads to the next one that starts; side calls have no part. `calls` in causal order. */
function chainOrder(calls: readonly OrderedCall[]): CausalOrder {
  const work = calls.flatMap(({ role }, position) => (role === 'side' ? [] : [position]));
  const next = new Map(work.map((position, k) => [position, work[k + 1]]));
  return toCsr(
    calls.map((_, position) => {
      const successor = next.get(position);
      return successor === undefined ? [] : [successor];
    }),
  );
}

/**
 * Successors along causal edges with equal weights: the one that starts first, and those that were settled when it
 * started. A successor that appears later gets no link, because a link that depends on the outcome biases lambda < 1.
 * What counts as settled is read off the structure, never off who happened to finish first: agents that one reply
 * started, calls that run in parallel with the first one, and whatever the first one cannot have caused because the
 * reply itself started both. An ambiguous edge, or one that is likely wrong,
 * makes its call a sink: the call falls back to what the whole rollout was worth. `calls` in causal order.
 */
function lineageOrder(calls: readonly OrderedCall[], edges: readonly OrderedEdge[]): CausalOrder {
  const positionOf = new Map(calls.map(({ call }, position) => [call, position]));
  const out: { to: number; type: EdgeType }[][] = calls.map(() => []);
  const into: number[][] = calls.map(() => []);
  const siblings = new Set<string>();
  const sinks = new Set<number>();
  for (const { from, to, type, confidence = 1 } of edges) {
    const a = positionOf.get(from);
    const b = positionOf.get(to);
    if (a === undefined || b === undefined) continue;
    if (type === 'parallel') siblings.add(`${a}:${b}`).add(`${b}:${a}`);
    else if (type === 'ambiguous' || confidence < DOUBTFUL) sinks.add(a);
    else if (a < b && calls[a]!.role !== 'side' && calls[b]!.role !== 'side') {
      out[a]!.push({ to: b, type });
      into[b]!.push(a);
    }
  }
  return toCsr(
    out.map((links, position) => {
      if (sinks.has(position) || links.length === 0) return [];
      links.sort((a, b) => a.to - b.to);
      const [first, ...others] = links;
      const settled = others.filter(({ to, type }) => {
        if (to === first!.to) return false;
        if (siblings.has(`${first!.to}:${to}`)) return true;
        if (type !== 'spawn' && first!.type !== 'spawn') return false;
        // What one reply started at once: no other cause leads into it than that reply.
        return into[to]!.every((cause) => cause === position);
      });
      return [first!.to, ...new Set(settled.map(({ to }) => to))];
    }),
  );
}

function toCsr(successors: readonly (readonly number[])[]): CausalOrder {
  const offset_C1 = new Int32Array(successors.length + 1);
  successors.forEach((list, position) => {
    offset_C1[position + 1] = offset_C1[position]! + list.length;
  });
  const numLinks = offset_C1[successors.length]!;
  const successor_L = new Int32Array(numLinks);
  const weight_L = new Float32Array(numLinks);
  successors.forEach((list, position) => {
    successor_L.set(list, offset_C1[position]);
    weight_L.fill(1 / list.length, offset_C1[position], offset_C1[position + 1]);
  });
  return { offset_C1, successor_L, weight_L };
}
