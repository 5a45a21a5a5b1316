import type { Policy, WeightsRef } from './weights.js';

/**
 * A batch as the learner consumes it: rows of tokens, each a context of its own or the continuation of an earlier row, so
 * that a shared prefix is stored once. A sampled token is *owned* by exactly one row, so that it stands in the loss once.
 *
 * Legend: B rows, T tokens over all rows.
 */
export interface PackedTrees {
  /** Row b is `tokens_T[rowStart_B1[b] .. rowStart_B1[b+1])`; B + 1 offsets. */
  rowStart_B1: Int32Array;
  /** The earlier row whose last token row b follows; −1: it begins a context. Absent: all begin one. */
  parent_B?: Int32Array;
  tokens_T: Int32Array;
  /** 1 where this row trains the token. */
  owned_T: Uint8Array;
  /** Of the distribution that was sampled from; NaN where not sampled. */
  rolloutLogprobs_T: Float32Array;
  advantages_T: Float32Array;
  /** Temperature the token was drawn at. */
  temperature_T: Float32Array;
  /** Index of the rollout (baseline vote) a row belongs to. */
  rollout_B: Int32Array;
  /** Policy version that sampled a row; −1 where unknown or nothing was sampled. Absent: all unknown. */
  version_B?: Int32Array;
  /** Ids masked in the sampler, hence in the training softmax. */
  bannedIds: readonly number[];
  numRollouts: number;
  /** What a critic needs. */
  calls?: PackedCalls;
}

/**
 * The calls behind a batch's rows. Legend: R packed rollouts, C calls in order of their start, L causal links.
 */
export interface PackedCalls {
  callOffset_R1: Int32Array;
  /** As in `rollout_B`. */
  rollout_R: Int32Array;
  reward_R: Float32Array;
  /** The row a call sampled; −1 when it sampled nothing. */
  action_C: Int32Array;
  /** Ranks within the rollout: `finish < start` says that one had finished before the other started. */
  start_C: Int32Array;
  /** 2³¹ − 1: never (side calls, which no other call can see). */
  finish_C: Int32Array;
  /** The first call whose context a row is part of. */
  call_B: Int32Array;
  chain: CausalLinks;
  lineage: CausalLinks;
}

/** Successors of call c: `successor_L[successorOffset_C1[c] .. successorOffset_C1[c+1])`, with their weights. */
export interface CausalLinks {
  successorOffset_C1: Int32Array;
  successor_L: Int32Array;
  weight_L: Float32Array;
}

export interface Scores {
  /** NaN where not owned. */
  logprobs_T: Float32Array;
  entropies_T: Float32Array;
}

/** What a critic's values are, and how advantages come from them. */
export interface CriticLoss {
  /** `context`: a call's own context; `history`: also everything that had finished before it started. */
  sees: 'context' | 'history';
  order: 'chain' | 'lineage';
  gamma: number;
  lambda: number;
  /** Values may move this far from those at the start of the update. @default Infinity */
  clip?: number;
  /** Learning rate of a separate value model. */
  lr: number;
  /** Weight of the value loss where policy and value share a trunk. */
  coef: number;
}

export interface PolicyLoss {
  kind: 'policy';
  /** See `policyLoss` of @treeward/native; `gspo` takes a rollout as its sequence. @default 'ppo' */
  objective?: 'ppo' | 'cispo' | 'gspo';
  clipLow: number;
  clipHigh: number;
  /** @default Infinity */
  dualClip?: number;
  /** Truncated importance sampling: w = min(exp(logp_old - logp_rollout), c). @default Infinity */
  truncation?: number;
  /** `mask` gives weight 0 beyond `truncation`; `off` is 1 everywhere. @default 'truncate' */
  importance?: 'truncate' | 'mask' | 'off';
  /**
   * What a sum over tokens is divided by: a constant (planned rollouts × norm tokens), the mini-batch's trained tokens, or
   * each rollout's own trained tokens and then the number of rollouts.
   */
  normaliser: number | 'batch-tokens' | 'rollout-mean';
  epochs: number;
  minibatches: number;
  /** Stop the epochs once a mini-batch's approx_kl exceeds this. 0 = never. */
  klStop: number;
  /** KL to the reference weights, as a loss term. @default 'none' */
  kl?: 'none' | 'k1' | 'k2' | 'k3';
  /** @default 0 */
  klCoef?: number;
  /** @default 0 */
  entropyCoef?: number;
  /** Tokens sampled by a version older than the current one by more than this do not train. @default Infinity */
  staleness?: number;
  /** Mean |logp_old − logp_rollout| of the current version's tokens above which the update refuses to train. @default Infinity */
  mismatchMax?: number;
  /** Advantages come from a critic instead of from `advantages_T`. */
  critic?: CriticLoss;
  seed: string;
}

/** Weighted cross-entropy: `advantages_T` holds the weight of each target token. */
export interface SftLoss {
  kind: 'sft';
}

/** The critic alone, towards the returns of the batch's rollouts: a stage before the policy moves. */
export interface ValueLoss {
  kind: 'value';
  critic: CriticLoss;
  epochs: number;
  minibatches: number;
  seed: string;
}

export type Loss = PolicyLoss | SftLoss | ValueLoss;

export interface OptimizerStep {
  /** Learning rate of this update (the schedule is the caller's). */
  lr: number;
  maxGradNorm: number;
}

/** Names as in style.md (`policy/approx_kl`, `optim/grad_norm`, …). */
export type UpdateMetrics = Record<string, number>;

export interface LearnerCapabilities {
  losses: readonly Loss['kind'][];
  critic: boolean;
  fullFineTune: boolean;
  prefixSharing: boolean;
  reduction: 'sum' | 'sequence-mean';
}

export interface Learner {
  capabilities(): Promise<LearnerCapabilities>;
  score(batch: PackedTrees): Promise<Scores>;
  /** One atomic update: all epochs and mini-batches, or (on an error) none of them. Plain sum, divided by the normaliser. */
  update(batch: PackedTrees, loss: Loss, optimizer: OptimizerStep): Promise<UpdateMetrics>;
  /** Writes sampler weights into `directory` and names them. */
  publish(directory: string): Promise<{ policy: Policy; weights: WeightsRef }>;
  /** Writes `model.safetensors`, `optimizer.safetensors`, `state.json` into `directory`. */
  save(directory: string): Promise<void>;
  load(directory: string): Promise<void>;
  close(): Promise<void>;
}
