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
export { groupAdvantages, type GroupEstimator, type GroupOptions } from './credit.js';
export { packTrees, type PackOptions } from './pack.js';
export { readBatch, writeBatch } from './batch-file.js';
export { RemoteLearner } from './remote-learner.js';
export {
  learnerEntry,
  spawnLearner,
  type LearnerProcessConfig,
  type SpawnedLearner,
} from './spawn-learner.js';
export { writeGguf } from './export/gguf.js';
export { readWeights, writeWeights, type Weights } from './checkpoint.js';
export { tensorflowVersion } from './tf/version.js';
