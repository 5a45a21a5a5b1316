import { randomStream } from '@treeward/base';
import type { RecordEvent } from '@treeward/telemetry';
import type { SimulatedRollout } from '../simulate/rollout.js';
import { NO_LIVE_FAULTS, type LiveFaults } from '../simulate/world.js';
import { RECORD_FAULTS } from './record-faults.js';

export type FaultName = keyof typeof RECORD_FAULTS | 'cut-stream' | 'truncated-results' | 'rewritten-ids';

/** Under which faults a set of rollouts is recovered. */
export interface Condition {
  name: string;
  faults: readonly FaultName[];
  /** Of calls, for each fault. */
  rate: number;
}

const LIVE: Readonly<Partial<Record<FaultName, keyof LiveFaults>>> = {
  'cut-stream': 'cutStream',
  'truncated-results': 'truncateResults',
  'rewritten-ids': 'rewriteIds',
};

export const FAULTS: readonly FaultName[] = [
  ...(Object.keys(RECORD_FAULTS) as (keyof typeof RECORD_FAULTS)[]),
  'cut-stream',
  'truncated-results',
  'rewritten-ids',
];

export const CLEAN: Condition = { name: 'clean', faults: [], rate: 0 };

/** Each fault at 5 % of calls alone, and all of them together at 2 % each. */
export const FAULTY: readonly Condition[] = [
  ...FAULTS.map((fault): Condition => ({ name: fault, faults: [fault], rate: 0.05 })),
  { name: 'all', faults: FAULTS, rate: 0.02 },
];

/** The part of a condition that the simulation has to know. */
export function liveFaults({ faults, rate }: Condition): LiveFaults {
  const live = { ...NO_LIVE_FAULTS };
  for (const fault of faults) {
    const name = LIVE[fault];
    if (name) live[name] = rate;
  }
  return live;
}

export interface FaultedRecord {
  events: RecordEvent[];
  /** Calls whose arrival the record no longer holds: edges from and to them cannot be asked for. */
  lost: ReadonlySet<number>;
  struck: ReadonlyMap<FaultName, number>;
}

/** The rest of a condition, done to a finished record. */
export function applyFaults(rollout: SimulatedRollout, condition: Condition, seed: string): FaultedRecord {
  const struck = new Map<FaultName, number>();
  let events: RecordEvent[] = [...rollout.record.events];
  for (const fault of condition.faults) {
    const live = LIVE[fault];
    if (live) {
      struck.set(fault, rollout.struck[live]);
      continue;
    }
    const done = RECORD_FAULTS[fault as keyof typeof RECORD_FAULTS](
      rollout.record,
      events,
      condition.rate,
      randomStream(seed, condition.name, fault),
    );
    events = done.events;
    struck.set(fault, done.calls.size);
  }
  const arrived = new Set(events.flatMap((event) => (event.type === 'call.start' ? [event.call] : [])));
  const lost = new Set(rollout.truth.calls.map(({ call }) => call).filter((call) => !arrived.has(call)));
  return { events, lost, struck };
}
