import { FAMILY_NAMES, makeTask } from './make-task.js';
import { seedOf } from './splits.js';
import type { GeneratedTask } from './types.js';

/** One task per family, from the demonstration range: what `tasks/sample/` holds. */
export function sampleTasks(): GeneratedTask[] {
  return FAMILY_NAMES.map((family) => makeTask(family, seedOf('demonstrate', 1)));
}
