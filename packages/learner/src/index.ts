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
export { TfjsLearner, type TfjsLearnerOptions } from './tfjs-learner.js';
export { embeddedConfig, type ModelConfig } from './model/config.js';
export type { OptimizerOptions } from './optim/options.js';
