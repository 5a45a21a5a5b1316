import type { PolicyLoss } from '../types.js';

type Normalised = Pick<PolicyLoss, 'normaliser' | 'minibatches'>;

/** Weight of each token in the sum: 1, or one over its rollout's trained tokens. T packed tokens. */
export function tokenWeights(
  { normaliser }: Normalised,
  ofRollout: ReadonlyMap<number, readonly number[]>,
  T: number,
): Float32Array {
  const weight_T = new Float32Array(T).fill(1);
  if (normaliser !== 'rollout-mean') return weight_T;
  for (const tokens of ofRollout.values()) for (const token of tokens) weight_T[token] = 1 / tokens.length;
  return weight_T;
}

/**
 * What a mini-batch's weighted sum is divided by. A constant belongs to the whole batch, of which a mini-batch is a share; so
 * does the number of rollouts.
 */
export function normaliserOf(loss: Normalised, miniBatchTokens: number, rollouts: number): number {
  if (loss.normaliser === 'batch-tokens') return miniBatchTokens;
  return (loss.normaliser === 'rollout-mean' ? rollouts : loss.normaliser) / loss.minibatches;
}
