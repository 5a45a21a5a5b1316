import type { Policy, WeightsRef } from './weights.js';

/**
 * A batch as the learner consumes it. Each row is one root-to-leaf path of a rollout's tree; a sampled token is *owned* by
 * exactly one row even where paths share it, so that it stands in the loss once.
 *
 * Legend: B rows, T tokens over all rows.
 */
export interface PackedTrees {
  /** Row b is `tokens_T[rowStart_B1[b] .. rowStart_B1[b+1])`; B + 1 offsets. */
  rowStart_B1: Int32Array;
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
  /** Ids masked in the sampler, hence in the training softmax. */
  bannedIds: readonly number[];
  numRollouts: number;
}

export interface Scores {
  /** NaN where not owned. */
  logprobs_T: Float32Array;
  entropies_T: Float32Array;
}

export interface PolicyLoss {
  kind: 'policy';
  clipLow: number;
  clipHigh: number;
  /** Truncated importance sampling: w = min(exp(logp_old - logp_rollout), c). */
  truncation: number;
  /** The constant a sum over tokens is divided by (planned rollouts × norm tokens), or `batch-tokens`. */
  normaliser: number | 'batch-tokens';
  epochs: number;
  minibatches: number;
  /** Stop the epochs once a mini-batch's approx_kl exceeds this. 0 = never. */
  klStop: number;
  seed: string;
}

/** Weighted cross-entropy: `advantages_T` holds the weight of each target token. */
export interface SftLoss {
  kind: 'sft';
}

export type Loss = PolicyLoss | SftLoss;

export interface OptimizerStep {
  /** Learning rate of this update (the schedule is the caller's). */
  lr: number;
  maxGradNorm: number;
}

/** Names as in style.md (`policy/approx_kl`, `optim/grad_norm`, …). */
export type UpdateMetrics = Record<string, number>;

export interface LearnerCapabilities {
  losses: readonly ('policy' | 'sft')[];
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
