export { lastConversation, type Conversation } from './conversation.js';
export { loadTask } from './task.js';
export { SandboxGrader, type SandboxGraderOptions } from './grade.js';
export { runRollout, type RolloutDeps } from './run-rollout.js';
export { memoryAvailable, type AdmissionOptions } from './admission.js';
export { RolloutPool, type RolloutPoolOptions } from './pool.js';
export { settle } from './settle.js';
export { FAULTS, faultOf, INFRASTRUCTURE, type FaultKind, type FaultRule } from './faults.js';
export { StateGrader } from './workspace-states.js';
export type {
  Grade,
  Grader,
  ModelHealth,
  RolloutQueue,
  RolloutResult,
  RolloutSpec,
  StateScores,
  Task,
} from './types.js';
