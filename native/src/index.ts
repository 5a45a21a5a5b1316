export { adamw, adamwAsync, adamwCoefficients, type AdamwArrays, type AdamwOptions } from './adamw.js';
export type { Backend, CudaInfo } from './binding.js';
export {
  causalGae,
  causalGaeAsync,
  joinCausalOrders,
  type CausalGaeInput,
  type CausalGaeInto,
  type CausalGaeOptions,
  type CausalGaeResult,
  type CausalOrderLike,
} from './causal-gae.js';
export { NativeError, type NativeErrorCode } from './errors.js';
export { getBackendInfo, type BackendInfo } from './load-binding.js';
export {
  linearLogprob,
  linearLogprobAsync,
  linearLogprobBackward,
  linearLogprobBackwardAsync,
  type LinearLogprobBackwardInput,
  type LinearLogprobGradients,
  type LinearLogprobInput,
  type LinearLogprobOptions,
  type LinearLogprobResult,
} from './linear-logprob.js';
export {
  cutForest,
  cutForestAsync,
  joinTrees,
  packTrees,
  packTreesAsync,
  type CutForestInput,
  type CutForestOptions,
  type MicroBatches,
  type PackableTree,
  type PackedForest,
  type PackTreesInput,
} from './pack-trees.js';
export {
  policyLoss,
  policyLossAsync,
  type PolicyLossInput,
  type PolicyLossInto,
  type PolicyLossOptions,
  type PolicyLossResult,
  type PolicyLossStats,
} from './policy-loss.js';
export {
  rmsNorm,
  rmsNormAsync,
  rmsNormBackward,
  rmsNormBackwardAsync,
  type RmsNormBackwardInput,
  type RmsNormGradients,
  type RmsNormInput,
  type RmsNormOptions,
  type RmsNormResult,
} from './rms-norm.js';
export {
  rope,
  ropeAsync,
  ropeBackward,
  ropeBackwardAsync,
  ropeTables,
  type RopeInput,
  type RopeOptions,
} from './rope.js';
export {
  swiglu,
  swigluAsync,
  swigluBackward,
  swigluBackwardAsync,
  type SwigluBackwardInput,
  type SwigluGradients,
  type SwigluInput,
} from './swiglu.js';
export { tensorflowGpuOperatorsPath, tensorflowOperatorsPath } from './tensorflow-path.js';
export {
  treeAttention,
  treeAttentionAsync,
  treeAttentionBackward,
  treeAttentionBackwardAsync,
  type TreeAttentionBackwardInput,
  type TreeAttentionGradients,
  type TreeAttentionInput,
  type TreeAttentionOptions,
  type TreeAttentionResult,
} from './tree-attention.js';
export {
  valueLoss,
  valueLossAsync,
  type ValueLossInput,
  type ValueLossInto,
  type ValueLossOptions,
  type ValueLossResult,
} from './value-loss.js';
