import type { Ops } from '../tf/ops.js';
import type { Tensor } from '../tf/load.js';
import type { HeadFunction, MicroBatch } from './decoder.js';

/** Log-probabilities below this are reported as this: a softmax in float32 underflows there. */
const LEAST_PROBABILITY = 1e-37;
/** Added to logits of ids that could not be sampled; their probability becomes exactly 0. */
const BANNED = -1e9;

/** How the logits become the distribution that was sampled from. */
export interface Distribution {
  /** Per token of the packed axis. */
  temperature: (token: number) => number;
  bannedIds: readonly number[];
}

interface Chosen {
  probs: Tensor;
  /** Index of each target in the flattened probabilities, [M]. */
  flat_M: Tensor;
  logprobs_M: Tensor;
}

function choose(ops: Ops, logits: Tensor, batch: MicroBatch): Chosen {
  const [M, V] = logits.shape as [number, number];
  const probs = ops.softmax(logits);
  const flat_M = ops.tf.tensor1d(
    batch.targets_M.map((target, m) => m * V + target),
    'int32',
  );
  const chosen = ops.gather(ops.reshape(probs, [M * V]), flat_M);
  return { probs, flat_M, logprobs_M: ops.log(ops.maximum(chosen, ops.constant(LEAST_PROBABILITY))) };
}

/** softmax·c − onehot·c per row: the logits' gradient of −Σ c·logp. */
function crossEntropyGrad(ops: Ops, { probs, flat_M }: Chosen, coefficient_M: Float32Array): Tensor {
  const [M, V] = probs.shape as [number, number];
  const coefficient = ops.tf.tensor1d(coefficient_M);
  const scaled = ops.mul(probs, ops.reshape(coefficient, [M, 1]));
  const flat = ops.scatterSub(ops.reshape(scaled, [M * V]), ops.reshape(flat_M, [M, 1]), coefficient);
  return ops.reshape(flat, [M, V]);
}

function adjusted(ops: Ops, logits: Tensor, batch: MicroBatch, distribution: Distribution): Tensor {
  const [M, V] = logits.shape as [number, number];
  let out = logits;
  const inverse = Float32Array.from(batch.source_M, (token) => 1 / distribution.temperature(token));
  if (inverse.some((x) => x !== 1)) out = ops.mul(out, ops.tf.tensor(inverse, [M, 1]));
  if (distribution.bannedIds.length) {
    const mask = new Float32Array(V);
    for (const id of distribution.bannedIds) mask[id] = BANNED;
    out = ops.add(out, ops.tf.tensor1d(mask));
  }
  return out;
}

/** Weighted cross-entropy of the bare distribution, Σ w·(−logp). */
export function sftHead(
  ops: Ops,
  weight: (token: number) => number,
  report: (batch: MicroBatch, logprobs_M: Float32Array) => void,
): HeadFunction {
  return (hidden, head, batch) => {
    const chosen = choose(ops, ops.matMul(hidden, head, false, true), batch);
    report(batch, chosen.logprobs_M.dataSync() as Float32Array);
    return crossEntropyGrad(ops, chosen, Float32Array.from(batch.source_M, weight));
  };
}

/** Log-probabilities and entropies under the sampled-from distribution; no gradient. */
export function scoreHead(
  ops: Ops,
  distribution: Distribution,
  report: (batch: MicroBatch, logprobs_M: Float32Array, entropies_M: Float32Array) => void,
): HeadFunction {
  return (hidden, head, batch) => {
    const logits = adjusted(ops, ops.matMul(hidden, head, false, true), batch, distribution);
    const { probs, logprobs_M } = choose(ops, logits, batch);
    const logs = ops.log(ops.maximum(probs, ops.constant(LEAST_PROBABILITY)));
    const entropies = ops.sum(ops.mul(probs, logs), [1]);
    report(
      batch,
      logprobs_M.dataSync() as Float32Array,
      (entropies.dataSync() as Float32Array).map((x) => -x),
    );
    return null;
  };
}

/** Any objective of log-probabilities: `gradient` returns ∂L/∂logp for the micro-batch's tokens. */
export function policyHead(
  ops: Ops,
  distribution: Distribution,
  gradient: (batch: MicroBatch, logprobs_M: Float32Array) => Float32Array,
): HeadFunction {
  return (hidden, head, batch) => {
    const logits = adjusted(ops, ops.matMul(hidden, head, false, true), batch, distribution);
    const chosen = choose(ops, logits, batch);
    const gradLogp_M = gradient(batch, chosen.logprobs_M.dataSync() as Float32Array);
    const coefficient = gradLogp_M.map((g, m) => -g / distribution.temperature(batch.source_M[m]!));
    return crossEntropyGrad(ops, chosen, coefficient);
  };
}
