export { INFRASTRUCTURE } from './types.js';
export type { FaultKind, Grade, Grader, RolloutQueue, RolloutResult, RolloutSpec, Task } from './types.js';
