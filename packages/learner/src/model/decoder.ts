import type { Ops } from '../tf/ops.js';
import type { Tensor } from '../tf/load.js';
import type { Frame } from './attention.js';
import type { ModelConfig } from './config.js';
import type { FusedGrads, FusedWeights } from './fused.js';
import { layerBackward, layerForward, type LayerCache } from './layer.js';
import { normalise, normaliseGrad } from './norm.js';
import { causalMask, positionTables } from './rope.js';

/** Rows of a batch, padded on the right to one length. Padding is harmless: attention is causal, and it has no loss. */
export interface MicroBatch {
  B: number;
  T: number;
  /** [B·T] */
  tokens: Int32Array;
  /** Positions (in B·T) whose next token is scored, ascending. */
  positions_M: Int32Array;
  /** The token that follows each. */
  targets_M: Int32Array;
  /** Where each scored token stands in the packed batch's T axis. */
  source_M: Int32Array;
}

/**
 * Reads hidden states → a scalar objective's gradient. Given the normalised states at the scored positions [M, d] and the
 * head [V, d], it returns the logits' gradient [M, V], or null when only values were wanted.
 */
export type HeadFunction = (hidden_Md: Tensor, head_Vd: Tensor, batch: MicroBatch) => Tensor | null;

const frameOf = (ops: Ops, config: ModelConfig, batch: MicroBatch): Frame => {
  const { T, B } = batch;
  const { cos_Th, signedSin_Th } = positionTables(config, T);
  const G = config.heads / config.kvHeads;
  const { tf } = ops;
  return {
    B,
    T,
    cos: tf.tensor(cos_Th, [1, 1, T, config.headDim]),
    signedSin: tf.tensor(signedSin_Th, [1, 1, T, config.headDim]),
    mask: tf.tensor(causalMask(T, G), [1, 1, G * T, T]),
  };
};

/**
 * One micro-batch forward and, if the head function gives a gradient, backward. The passes are written out by hand: no
 * tape records them, and each layer's temporaries are freed as soon as the layer is done. Returned tensors are the
 * caller's.
 */
export function runMicroBatch(
  ops: Ops,
  config: ModelConfig,
  weights: FusedWeights,
  batch: MicroBatch,
  headFunction: HeadFunction,
): FusedGrads | null {
  const { tf } = ops;
  return tidy(tf, (): FusedGrads | null => {
    const frame = frameOf(ops, config, batch);
    const ids = tf.tensor1d(batch.tokens, 'int32');
    const positions = tf.tensor1d(batch.positions_M, 'int32');
    let x = ops.gather(weights.embed, ids);
    const caches: LayerCache[] = [];
    for (const layer of weights.layers) {
      const { y, cache } = tidy(tf, () => layerForward(ops, config, frame, layer, x));
      caches.push(cache);
      x = y;
    }
    const { unit, scale } = normalise(ops, ops.gather(x, positions), config.normEps);
    const dLogits = headFunction(unit, weights.head, batch);
    if (!dLogits) return null;

    const headGrad = ops.matMul(dLogits, unit, true);
    const dUnit = ops.matMul(dLogits, weights.head);
    const dHidden = normaliseGrad(ops, unit, scale, dUnit, ops.mul(dUnit, unit));
    let dx = ops.segmentSum(dHidden, positions, batch.B * batch.T);
    const layers: FusedGrads['layers'] = [];
    for (let l = weights.layers.length - 1; l >= 0; l--) {
      const cache = caches[l]!;
      const result = tidy(tf, () => layerBackward(ops, config, frame, weights.layers[l]!, cache, dx));
      for (const tensor of [...Object.values(cache.attention), ...Object.values(cache)]) {
        if (tensor instanceof tf.Tensor) tensor.dispose();
      }
      dx = result.dx;
      layers.unshift(result.grads);
    }
    const embed = ops.segmentSum(dx, ids, config.vocabSize);
    return { embed, layers, head: headGrad };
  });
}

/** tf.tidy with a type for structured results (tfjs walks any nesting of objects and arrays). */
export function tidy<R>(tf: Ops['tf'], f: () => R): R {
  return tf.tidy(f as () => never) as R;
}
