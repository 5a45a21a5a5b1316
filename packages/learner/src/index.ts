export type {
  CausalLinks,
  CriticLoss,
  Learner,
  LearnerCapabilities,
  Loss,
  OptimizerStep,
  PackedCalls,
  PackedTrees,
  PolicyLoss,
  Scores,
  SftLoss,
  UpdateMetrics,
  ValueLoss,
} from './types.js';
export type { Policy, WeightsRef } from './weights.js';
export { TfjsLearner, type TfjsLearnerOptions } from './tfjs-learner.js';
export { embeddedConfig, type ModelConfig } from './model/config.js';
export { ALL_LINEARS, type LoraOptions } from './model/lora.js';
export type { RopeScaling } from './model/rope.js';
export type { OptimizerOptions } from './optim/options.js';
export { scheduledRate, type RateSchedule } from './optim/schedule.js';
export { algorithmDefaults, type Algorithm, type PolicyAlgorithm } from './algorithms/algorithm.js';
export { methodPresets, type MethodPreset } from './algorithms/presets.js';
export { resolveAlgorithm, type ResolvedAlgorithm } from './algorithms/resolve.js';
export { groupAdvantages, type GroupEstimator, type GroupOptions } from './algorithms/group-advantages.js';
export { packTrees, type PackOptions } from './pack/pack-trees.js';
export { readBatch, writeBatch } from './batch-file.js';
export { RemoteLearner } from './remote-learner.js';
export {
  learnerEntry,
  spawnLearner,
  type LearnerProcessConfig,
  type SpawnedLearner,
} from './spawn-learner.js';
export { writeGguf, type GgufType } from './export/gguf.js';
export { resolveModel, type ResolveOptions } from './hub/resolve-model.js';
export { readModelConfig } from './model/hf-config.js';
export { estimateMemory, type MemoryEstimate, type MemoryInput } from './memory-estimate.js';
export { readWeights, weightFiles, writeWeights, type Weights } from './checkpoint/weights.js';
export { tensorflowDevice, type TensorFlowDevice } from './tf/load.js';
export { tensorflowVersion } from './tf/version.js';
