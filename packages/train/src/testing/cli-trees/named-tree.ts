import { applyPreset, presets, type CallRole, type RolloutTree } from '@treeward/tree-recovery';
import type { SeenRequest } from './scripted-policy.js';

/** What a tree says, in the names of a scenario and in an order of its own: two of them can be compared, and the diff read. */
export interface NamedTree {
  roles: Partial<Record<CallRole, string[]>>;
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
  const roles: NamedTree['roles'] = {};
  const agents = new Map<number, string[]>();
  const untrained: NamedTree['untrained'] = {};
  for (const { call, role, agent, untrained: why } of tree.calls) {
    (roles[role] ??= []).push(name(call));
    if (role !== 'side') agents.set(agent, [...(agents.get(agent) ?? []), name(call)]);
    if (why !== null) (untrained[why] ??= []).push(name(call));
  }
  const [main = [], ...others] = [...agents].sort(([a], [b]) => a - b).map(([, names]) => names);
  return inOrder({
    roles,
    agents: [main, ...others],
    edges: tree.edges.map(({ from, to, type }) => {
      const ends = [name(from), name(to)];
      return (type === 'parallel' ? ends.sort() : ends).join(` ${type} `);
    }),
    untrained,
    malformed: tree.calls.filter(({ malformed }) => malformed).map(({ call }) => name(call)),
  });
}

/** The tree that a scenario has by construction. Roles follow from the agents and the names. */
export function expectedTree({
  agents,
  edges,
  title = [],
  untrained = {},
  malformed = [],
}: Pick<NamedTree, 'agents' | 'edges'> & Partial<NamedTree> & { title?: string[] }): NamedTree {
  const roles: NamedTree['roles'] = {};
  agents.forEach((names, agent) => {
    for (const name of names) {
      const role = name.startsWith('summary') ? 'compaction' : agent === 0 ? 'main' : 'subagent';
      (roles[role] ??= []).push(name);
    }
  });
  if (title.length > 0) roles.side = title;
  const left = title.length > 0 ? { ...untrained, 'side call': title } : untrained;
  return inOrder({ roles, agents, edges, untrained: left, malformed });
}

function inOrder({
  roles,
  agents: [main = [], ...others],
  edges,
  untrained,
  malformed,
}: NamedTree): NamedTree {
  return {
    roles: sorted(roles),
    agents: [main.toSorted(), ...others.map((names) => names.toSorted()).sort()],
    edges: edges.toSorted(),
    untrained: sorted(untrained),
    malformed: malformed.toSorted(),
  };
}

const sorted = <T extends Partial<Record<string, string[]>>>(lists: T): T =>
  Object.fromEntries(Object.entries(lists).map(([key, list]) => [key, list?.toSorted()])) as T;
