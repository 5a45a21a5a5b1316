export { applySteps } from './apply-steps.js';
export {
  DEFAULT_MIXTURE,
  demonstrate,
  FINAL_TEXT,
  type Demonstration,
  type Mixture,
  type Plan,
} from './demonstrate.js';
export {
  demonstrationTask,
  FAMILY_NAMES,
  heldOut,
  makeTask,
  taskById,
  trainTask,
  validation,
} from './make-task.js';
export { renameSlots, renameTask } from './rename-slots.js';
export { seedOf, SPLIT_SIZE, splitOf, SPLITS, type Split } from './splits.js';
export { stepArguments } from './steps.js';
export {
  DOMAINS,
  type Domain,
  type Draft,
  type GeneratedTask,
  type PoolName,
  type Rule,
  type Slot,
  type Step,
} from './types.js';
export { writeSolutions } from './write-solutions.js';
export { writeTaskDirectory, writeTasks, type TaskIndex } from './write-task.js';
