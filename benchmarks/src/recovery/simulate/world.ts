import type { Random } from '@treeward/base';
import type { GatewaySession } from '../record/gateway-session.js';
import type { Behaviour } from './behaviour.js';
import type { Clock } from './clock.js';
import type { TruthBuilder } from './truth.js';
import type { Words } from './words.js';

/** Faults that a record cannot be given afterwards, because the harness reacts to them. Rates per call. */
export interface LiveFaults {
  /** Replies whose stream breaks off; the harness tries again. */
  cutStream: number;
  /** Requests whose newest tool results are cut short. */
  truncateResults: number;
  /** Requests from which on all call ids in the history are others. */
  rewriteIds: number;
}

export const NO_LIVE_FAULTS: LiveFaults = { cutStream: 0, truncateResults: 0, rewriteIds: 0 };

/** Everything that the processes of one rollout share. */
export interface World {
  behaviour: Behaviour;
  clock: Clock;
  random: Random;
  words: Words;
  truth: TruthBuilder;
  gateway: GatewaySession;
  faults: LiveFaults;
  /** Of its own, so that a fault leaves everything else as it would have been. */
  faultRandom: Random;
  /** How often each live fault struck. */
  struck: Record<keyof LiveFaults, number>;
  /** Requests so far, for what changes from request to request. */
  requests: number;
}

export const chance = (world: World, probability: number): boolean => world.random.next() < probability;

/** A log-normal time. */
export function time(world: World, { median, spread }: Behaviour['timing']['sample']): number {
  return median * Math.exp(spread * world.random.normal());
}

/** Uniform whole number in a range, both ends included. */
export function between(world: World, [from, to]: readonly [number, number]): number {
  return from + world.random.below(to - from + 1);
}

export function strikes(world: World, fault: keyof LiveFaults): boolean {
  if (world.faults[fault] === 0 || world.faultRandom.next() >= world.faults[fault]) return false;
  world.struck[fault]++;
  return true;
}
