import type { TreeCall, TreeEdge, TreeEpoch, TreeRun } from './types.js';

/** Maximal chains of `continue`. Where two calls continue one, the later starts a run of its own. `calls` in causal order. */
export function runsOf(calls: readonly TreeCall[], edges: readonly TreeEdge[]): TreeRun[] {
  const continued = new Map<number, number>();
  for (const { from, to, type } of edges) if (type === 'continue') continued.set(to, from);
  const runs: number[][] = [];
  const endsIn = new Map<number, number[]>();
  for (const { call } of calls) {
    const from = continued.get(call);
    const run = from === undefined ? undefined : endsIn.get(from);
    if (run?.at(-1) === from && run !== undefined) {
      run.push(call);
      endsIn.set(call, run);
    } else {
      const fresh = [call];
      runs.push(fresh);
      endsIn.set(call, fresh);
    }
  }
  return runs.map((list) => ({ calls: list }));
}

/**
 * Stretches between compactions of one agent, and the index of the one each call lies in. A new one starts at the
 * first call on a compacted history, not at the call that wrote the summary. `calls` in causal order.
 */
export function epochsOf(
  calls: readonly Pick<TreeCall, 'call' | 'agent' | 'role'>[],
  edges: readonly TreeEdge[],
): { epochs: TreeEpoch[]; epochOf: ReadonlyMap<number, number> } {
  const roles = new Map(calls.map(({ call, role }) => [call, role]));
  const starts = new Set(
    edges.flatMap(({ type, to }) => (type === 'compaction' && roles.get(to) !== 'compaction' ? [to] : [])),
  );
  const epochs: { agent: number; calls: number[] }[] = [];
  const current = new Map<number, number>();
  const epochOf = new Map<number, number>();
  for (const { call, agent } of calls) {
    let epoch = current.get(agent);
    if (epoch === undefined || starts.has(call)) {
      epoch = epochs.push({ agent, calls: [] }) - 1;
      current.set(agent, epoch);
    }
    epochs[epoch]!.calls.push(call);
    epochOf.set(call, epoch);
  }
  return { epochs, epochOf };
}
