import { addCounts, type EdgeScore, type Judged } from '../score/edge-score.js';
import type { OwnershipCounts } from '../score/ownership.js';

export const METHODS = ['treeward', 'linearised', 'message_prefix', 'token_prefix'] as const;
export type Method = (typeof METHODS)[number];

/** What a set of rollouts under one condition added up to. Plain data: it comes back from worker threads. */
export interface Tally {
  condition: string;
  rollouts: number;
  calls: number;
  counts: EdgeScore['counts'];
  /** Edges of each baseline, all of them `continue`. */
  baselines: Record<Exclude<Method, 'treeward'>, EdgeScore['counts']>;
  judged: Judged[];
  roles: { calls: number; right: number };
  agents: { calls: number; right: number };
  ownership: OwnershipCounts;
  /** Sum over rollouts of the share of |advantage| on wrong tokens. */
  wrongAdvantage: Record<Method, number>;
  /** Calls each fault struck. */
  struck: Record<string, number>;
  failures: Failure[];
}

/** One edge that was missed or wrong: enough to draw the rollout again. */
export interface Failure {
  behaviour: string;
  seed: string;
  condition: string;
  kind: 'missed' | 'wrong' | 'role';
  what: string;
}

export function newTally(condition: string): Tally {
  return {
    condition,
    rollouts: 0,
    calls: 0,
    counts: {},
    baselines: { linearised: {}, message_prefix: {}, token_prefix: {} },
    judged: [],
    roles: { calls: 0, right: 0 },
    agents: { calls: 0, right: 0 },
    ownership: { tokens: 0, right: 0 },
    wrongAdvantage: { treeward: 0, linearised: 0, message_prefix: 0, token_prefix: 0 },
    struck: {},
    failures: [],
  };
}

const addNumbers = <T extends Record<string, number>>(into: T, from: Readonly<T>): void => {
  for (const name of Object.keys(from) as (keyof T)[]) {
    into[name] = ((into[name] ?? 0) + from[name]) as T[keyof T];
  }
};

export function addTally(into: Tally, from: Tally): void {
  into.rollouts += from.rollouts;
  into.calls += from.calls;
  addCounts(into.counts, from.counts);
  for (const name of ['linearised', 'message_prefix', 'token_prefix'] as const) {
    addCounts(into.baselines[name], from.baselines[name]);
  }
  for (const one of from.judged) into.judged.push(one);
  addNumbers(into.roles, from.roles);
  addNumbers(into.agents, from.agents);
  addNumbers(
    into.ownership as OwnershipCounts & Record<string, number>,
    from.ownership as OwnershipCounts & Record<string, number>,
  );
  addNumbers(into.wrongAdvantage, from.wrongAdvantage);
  addNumbers(into.struck, from.struck);
  for (const failure of from.failures) into.failures.push(failure);
}
