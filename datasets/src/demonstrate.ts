import { TreewardError, type Random } from '@treeward/base';
import type { GeneratedTask, Step } from './types.js';

/** What a demonstration ends with. One fixed text: several would split the probability of stopping. */
export const FINAL_TEXT = 'Done.';

export type Plan = 'clean' | 'dominant' | 'other';
export type Mixture = Readonly<Record<Plan, number>>;

/**
 * The limited demonstrator: it can copy and select (ability is hard to learn from reward) but mostly has its family's one
 * bad habit (structure is what reward teaches fast).
 */
export const DEFAULT_MIXTURE: Mixture = { clean: 0.36, dominant: 0.52, other: 0.12 };

export interface Demonstration {
  plan: Plan;
  steps: readonly Step[];
}

/** @throws TreewardError DATASET_E_MIXTURE when the shares are negative or do not sum to 1 */
export function demonstrate(
  task: GeneratedTask,
  random: Random,
  mixture: Mixture = DEFAULT_MIXTURE,
): Demonstration {
  const { clean, dominant, other } = mixture;
  const valid = [clean, dominant, other].every((share) => share >= 0);
  if (!valid || Math.abs(clean + dominant + other - 1) > 1e-9) {
    throw new TreewardError(
      'DATASET_E_MIXTURE',
      `mixture ${JSON.stringify(mixture)}: shares must be >= 0 and sum to 1`,
    );
  }
  const drawn = random.next();
  if (drawn < clean) return { plan: 'clean', steps: task.oracle };
  if (drawn < clean + dominant) return { plan: 'dominant', steps: task.flaws[0]! };
  return { plan: 'other', steps: random.pick(task.flaws.slice(1)) };
}
