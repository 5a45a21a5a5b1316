import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { WORKER_ARGUMENTS } from '@treeward/base';
import type { Condition } from '../faults/conditions.js';
import type { Behaviour } from '../simulate/behaviour.js';
import type { EvaluateTask } from './recovery-worker.js';
import { addTally, newTally, type Tally } from './tally.js';

/** Rollouts per task: long enough to outweigh the way to a thread, short enough to share out evenly. */
const SHARE = 10;

export interface SetOptions {
  behaviours: readonly Behaviour[];
  conditions: readonly Condition[];
  /** Of each behaviour under each condition. */
  rollouts: number;
  /** Prefix of every seed; sets with different prefixes share no draw. */
  seed: string;
  /** @default all cores */
  threads?: number;
  progress?: (done: number, of: number) => void;
}

/** Draws, recovers and scores on all cores; the tallies by condition, in their order. */
export async function evaluateSet(options: SetOptions): Promise<Tally[]> {
  const { behaviours, conditions, rollouts, seed, progress } = options;
  const tasks = conditions.flatMap((condition) =>
    behaviours.flatMap((behaviour) =>
      Array.from({ length: Math.ceil(rollouts / SHARE) }, (_, share): EvaluateTask => {
        const from = share * SHARE;
        const count = Math.min(SHARE, rollouts - from);
        const seeds = Array.from({ length: count }, (_, i) => `${seed}/${condition.name}/${from + i}`);
        return { behaviour, condition, seeds };
      }),
    ),
  );
  const pool = new Piscina<EvaluateTask, Tally>({
    filename: fileURLToPath(new URL('recovery-worker.js', import.meta.url)),
    maxThreads: options.threads ?? availableParallelism(),
    execArgv: [...WORKER_ARGUMENTS],
  });
  const tallies = new Map(conditions.map(({ name }) => [name, newTally(name)]));
  let done = 0;
  try {
    const results = await Promise.all(
      tasks.map(async (task) => {
        const tally = await pool.run(task);
        progress?.(++done, tasks.length);
        return tally;
      }),
    );
    // In the order of the tasks: sums of fractions do not depend on which thread was first.
    for (const tally of results) addTally(tallies.get(tally.condition)!, tally);
  } finally {
    await pool.destroy();
  }
  return [...tallies.values()];
}
