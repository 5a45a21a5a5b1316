import type { EdgeType } from '@treeward/tree-recovery';
import type { Draws, Table, ToyToken } from './process.js';

/** One call of a toy rollout. */
export interface ToyCall {
  name: string;
  tokens: ToyToken[];
  start: number;
  finish: number;
  /** What the policy sees (the critic with its own context sees no more): equal strings, equal contexts. */
  context: string;
  /** The call whose context it extends in the prefix tree; null at the root. */
  parent: string | null;
}

export interface ToyRun {
  calls: ToyCall[];
  edges: { from: string; to: string; type: EdgeType }[];
  reward: number;
  /** Reward of single leaves, where a toy has them. */
  leafRewards?: ReadonlyMap<string, number>;
  /** Calls whose reply did not reach the client. */
  undelivered?: ReadonlySet<string>;
  /** Attempts that another one replaced. */
  failed?: ReadonlySet<string>;
}

export interface Toy {
  name: string;
  /** What it is about, in a line. */
  about: string;
  table: Table;
  process(draws: Draws): ToyRun;
}
