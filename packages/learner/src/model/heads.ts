import type { Ops } from '../tf/ops.js';
import type { Tensor } from '../tf/load.js';
import type { HeadFunction, MicroBatch } from './decoder.js';

/** Index of each target in the flattened logits. */
function flatTargets(batch: MicroBatch, vocab: number): Int32Array {
  return batch.targets_M.map((target, m) => m * vocab + target);
}

/** softmax(logits)·c − onehot·c per row: the gradient of −c·logp. */
function crossEntropyGrad(ops: Ops, probs: Tensor, flat_M: Tensor, coefficient_M: Float32Array): Tensor {
  const [M, V] = probs.shape as [number, number];
  const coefficient = ops.tf.tensor1d(coefficient_M);
  const scaled = ops.mul(probs, ops.reshape(coefficient, [M, 1]));
  const flat = ops.scatterSub(ops.reshape(scaled, [M * V]), ops.reshape(flat_M, [M, 1]), coefficient);
  return ops.reshape(flat, [M, V]);
}

/** Weighted cross-entropy, Σ w·(−logp); adds each micro-batch's log-probabilities to `report`. */
export function sftHead(
  ops: Ops,
  weight: (token: number) => number,
  report: (batch: MicroBatch, logprobs_M: Float32Array) => void,
): HeadFunction {
  return (hidden, head, batch) => {
    const V = head.shape[0]!;
    const probs = ops.softmax(ops.matMul(hidden, head, false, true));
    const flat = ops.tf.tensor1d(flatTargets(batch, V), 'int32');
    const chosen = ops.log(ops.gather(ops.reshape(probs, [batch.targets_M.length * V]), flat));
    report(batch, chosen.dataSync() as Float32Array);
    return crossEntropyGrad(ops, probs, flat, Float32Array.from(batch.source_M, weight));
  };
}
