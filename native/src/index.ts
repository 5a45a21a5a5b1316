export { adamw, adamwCoefficients, type AdamwArrays, type AdamwOptions } from './adamw.js';
export type { Backend, CudaInfo } from './binding.js';
export {
  causalGae,
  joinCausalOrders,
  type CausalGaeInput,
  type CausalGaeOptions,
  type CausalGaeResult,
  type CausalOrderLike,
} from './causal-gae.js';
export { NativeError, type NativeErrorCode } from './errors.js';
export { getBackendInfo, type BackendInfo } from './load-binding.js';
export {
  linearLogprob,
  linearLogprobBackward,
  type LinearLogprobBackwardInput,
  type LinearLogprobGradients,
  type LinearLogprobInput,
  type LinearLogprobOptions,
  type LinearLogprobResult,
} from './linear-logprob.js';
export {
  policyLoss,
  type PolicyLossInput,
  type PolicyLossOptions,
  type PolicyLossResult,
  type PolicyLossStats,
} from './policy-loss.js';
export {
  rmsNorm,
  rmsNormBackward,
  type RmsNormBackwardInput,
  type RmsNormGradients,
  type RmsNormInput,
  type RmsNormOptions,
  type RmsNormResult,
} from './rms-norm.js';
export { rope, ropeBackward, ropeTables, type RopeInput, type RopeOptions } from './rope.js';
export {
  swiglu,
  swigluBackward,
  type SwigluBackwardInput,
  type SwigluGradients,
  type SwigluInput,
} from './swiglu.js';
export {
  treeAttention,
  treeAttentionBackward,
  type TreeAttentionBackwardInput,
  type TreeAttentionGradients,
  type TreeAttentionInput,
  type TreeAttentionOptions,
  type TreeAttentionResult,
} from './tree-attention.js';
export { valueLoss, type ValueLossInput, type ValueLossOptions, type ValueLossResult } from './value-loss.js';
