import type { AdamwArrays } from './adamw.js';
import type { CausalGaeInput, CausalGaeInto, CausalGaeOptions, CausalGaeResult } from './causal-gae.js';
import type {
  LinearLogprobBackwardInput,
  LinearLogprobGradients,
  LinearLogprobInput,
  LinearLogprobOptions,
  LinearLogprobResult,
} from './linear-logprob.js';
import type {
  CutForestInput,
  CutForestOptions,
  MicroBatches,
  PackedForest,
  PackTreesInput,
} from './pack-trees.js';
import type { PolicyLossInput, PolicyLossInto, PolicyLossOptions, PolicyLossResult } from './policy-loss.js';
import type {
  RmsNormBackwardInput,
  RmsNormGradients,
  RmsNormInput,
  RmsNormOptions,
  RmsNormResult,
} from './rms-norm.js';
import type { RopeInput, RopeOptions } from './rope.js';
import type { SwigluBackwardInput, SwigluGradients, SwigluInput } from './swiglu.js';
import type {
  TreeAttentionBackwardInput,
  TreeAttentionGradients,
  TreeAttentionInput,
  TreeAttentionOptions,
  TreeAttentionResult,
} from './tree-attention.js';
import type { ValueLossInput, ValueLossInto, ValueLossOptions, ValueLossResult } from './value-loss.js';

/** Which implementation of an operator computes. */
export type Backend = 'cpu' | 'cuda';

/** An operator of the addon; the CPU implementation unless `backend` says otherwise. */
type Operator<Input, Options, Result> = (input: Input, options: Options, backend?: Backend) => Result;

/** One that writes large results into arrays of the caller's. */
type OperatorInto<Input, Options, Result, Into> = (
  input: Input,
  options: Options,
  backend?: Backend,
  into?: Into,
) => Result;

export type CudaInfo =
  | { available: false; reason: string }
  | {
      available: true;
      device: string;
      /** Compute capability, `9.0`. */
      sm: string;
      /** As CUDA counts versions: 13000. */
      driver: number;
      cudaRuntime: number;
      memoryBytes: number;
    };

/**
 * What `treeward.node` exports, typed by hand in this one place. Changing it means raising both version numbers. Every operator
 * stands beside a twin with `Async` behind its name, which `promised` of call.ts calls.
 */
export interface Binding {
  interfaceVersion: number;
  buildInfo(): { compiler: string; napi: number; threads: number };
  cudaInfo(): CudaInfo;
  policyLoss: OperatorInto<PolicyLossInput, PolicyLossOptions, PolicyLossResult, PolicyLossInto>;
  valueLoss: OperatorInto<ValueLossInput, ValueLossOptions, ValueLossResult, ValueLossInto>;
  causalGae: OperatorInto<CausalGaeInput, CausalGaeOptions, CausalGaeResult, CausalGaeInto>;
  linearLogprob: Operator<LinearLogprobInput, LinearLogprobOptions, LinearLogprobResult>;
  linearLogprobBackward: Operator<LinearLogprobBackwardInput, LinearLogprobOptions, LinearLogprobGradients>;
  treeAttention: Operator<TreeAttentionInput, TreeAttentionOptions, TreeAttentionResult>;
  treeAttentionBackward: Operator<TreeAttentionBackwardInput, TreeAttentionOptions, TreeAttentionGradients>;
  rmsNorm: Operator<RmsNormInput, RmsNormOptions, RmsNormResult>;
  rmsNormBackward: Operator<RmsNormBackwardInput, RmsNormOptions, RmsNormGradients>;
  rope: Operator<RopeInput, RopeOptions & { direction?: 'forward' | 'inverse' }, Float32Array>;
  swiglu: Operator<SwigluInput, object, Float32Array>;
  swigluBackward: Operator<SwigluBackwardInput, object, SwigluGradients>;
  /** Writes over param_N, m_N and v_N. */
  adamw: Operator<AdamwArrays, { coefficients: Float32Array }, void>;
  packTrees: Operator<PackTreesInput, object, PackedForest>;
  cutForest: Operator<CutForestInput, CutForestOptions, MicroBatches>;
}

/** `kInterfaceVersion` of src/native/addon.cc. */
export const INTERFACE_VERSION = 3;
