import { applyPreset, presets, type RolloutTree } from '@treeward/tree-recovery';
import type { SeenRequest } from './scripted-policy.js';

/** What a tree says, in the names of a scenario and in an order of its own: two of them can be compared, and the diff read. */
export interface NamedTree {
  /** `name role`, in order of the names. */
  calls: string[];
  /** Names of the calls of each agent, the main one first. */
  agents: string[][];
  /** `from type to`; of a `parallel` edge the smaller name stands first, because siblings arrive in any order. */
  edges: string[];
  /** Names by the reason why they do not train, under the preset `treeward`. */
  untrained: Record<string, string[]>;
  malformed: string[];
}

export function namedTree(recovered: RolloutTree, seen: readonly SeenRequest[]): NamedTree {
  const tree = applyPreset(recovered, presets.treeward);
  const name = (call: number): string => seen[call]?.name ?? `call ${call}`;
  const agents = new Map<number, string[]>();
  const untrained: Record<string, string[]> = {};
  for (const call of tree.calls) {
    const own = name(call.call);
    if (call.role !== 'side') agents.set(call.agent, [...(agents.get(call.agent) ?? []), own].sort());
    if (call.untrained !== null) (untrained[call.untrained] ??= []).push(own);
  }
  const edges = tree.edges.map(({ from, to, type }) => {
    const ends = [name(from), name(to)];
    if (type === 'parallel') ends.sort();
    return ends.join(` ${type} `);
  });
  const [main = [], ...others] = [...agents].sort(([a], [b]) => a - b).map(([, names]) => names);
  return {
    calls: tree.calls.map(({ call, role }) => `${name(call)} ${role}`).sort(),
    agents: [main, ...others.sort()],
    edges: edges.sort(),
    untrained,
    malformed: tree.calls.filter(({ malformed }) => malformed).map(({ call }) => name(call)),
  };
}
