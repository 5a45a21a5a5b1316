export type {
  Learner,
  LearnerCapabilities,
  Loss,
  OptimizerStep,
  PackedTrees,
  PolicyLoss,
  Scores,
  SftLoss,
  UpdateMetrics,
} from './types.js';
export type { Policy, WeightsRef } from './weights.js';
