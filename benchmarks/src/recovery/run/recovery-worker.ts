import type { Condition } from '../faults/conditions.js';
import type { Behaviour } from '../simulate/behaviour.js';
import { evaluate } from './evaluate.js';
import { newTally, type Tally } from './tally.js';

export interface EvaluateTask {
  behaviour: Behaviour;
  condition: Condition;
  /** Of each rollout. */
  seeds: readonly string[];
}

/** A thread's share of the work. */
export default async function evaluateShare({ behaviour, condition, seeds }: EvaluateTask): Promise<Tally> {
  const tally = newTally(condition.name);
  for (const seed of seeds) await evaluate(behaviour, seed, condition, tally);
  return tally;
}
