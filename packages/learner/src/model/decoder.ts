import { kernelsOf, type Rotary } from '../tf/kernels.js';
import type { Tensor } from '../tf/load.js';
import type { Ops } from '../tf/ops.js';
import { attendWith, type Visibility } from '../tf/tree-attention.js';
import type { Frame } from './attention.js';
import type { ModelConfig } from './config.js';
import type { FusedGrads, FusedWeights } from './fused.js';
import { layerBackward, layerForward, type LayerCache, type Stream } from './layer.js';
import { positionTables } from './rope.js';

/** What one pass computes: N states, the first `keys` of them tokens that others attend to. */
export interface PassInput {
  tokens_N: Int32Array;
  /** Rotary positions. */
  depth_N: Int32Array;
  keys: number;
  visibility: Visibility;
  /** States that the output function reads. */
  reads_U: Int32Array;
}

/** Gradient of the objective with respect to the read states, and to the output's own weights. */
interface OutputGrads {
  dUnit: Tensor;
  head?: Tensor;
  value?: Tensor;
  valueBias?: Tensor;
}

/**
 * From the normalised states that are read [U, d] (without gain: it is in the output's matrix) to an objective's gradient,
 * or to null when only values were wanted. It reports values by side effect.
 */
type OutputFunction = (unit_Ud: Tensor, weights: FusedWeights) => OutputGrads | null;

interface PassOptions {
  /** Keep only each layer's input and compute the rest again in the backward pass. @default false */
  checkpointing?: boolean;
}

/**
 * One pass forward and, if the output function gives a gradient, backward. Both are written out by hand: no tape records
 * them, and each layer's temporaries are freed as soon as the layer is done. Returned tensors are the caller's.
 */
export function runPass(
  ops: Ops,
  config: ModelConfig,
  weights: FusedWeights,
  input: PassInput,
  output: OutputFunction,
  options: PassOptions = {},
): FusedGrads | null {
  const { tf } = ops;
  const kernels = kernelsOf(ops);
  const N = input.tokens_N.length;
  return tidy(tf, (): FusedGrads | null => {
    const frame = frameOf(ops, config, input);
    const ids = tf.tensor1d(input.tokens_N, 'int32');
    const reads = tf.tensor1d(input.reads_U, 'int32');
    const inputs: Tensor[] = [];
    const caches: LayerCache[] = [];
    let stream: Stream = { x: ops.gather(weights.embed, ids) };
    for (const layer of weights.layers) {
      const result = tidy(tf, (): { next: Stream; read?: Tensor; cache?: LayerCache } => {
        const { output: next, input: read, cache } = layerForward(ops, config, frame, layer, stream);
        return options.checkpointing ? { next, read } : { next, cache };
      });
      // Without a sum to take, the layer read the very tensor it was given.
      if (result.read !== stream.x) tf.dispose(stream as never);
      else stream.delta?.dispose();
      if (result.cache) caches.push(result.cache);
      if (result.read) inputs.push(result.read);
      stream = result.next;
    }
    const { unit, scale } = kernels.norm(
      ops.gather(stream.x, reads),
      config.normEps,
      lastDelta(ops, stream, reads),
    );
    tf.dispose(stream as never);
    const grads = output(unit, weights);
    if (!grads) return null;

    const dHidden = kernels.normGrad(unit, scale, grads.dUnit);
    let dx = ops.segmentSum(dHidden, reads, N);
    const layers: FusedGrads['layers'] = [];
    for (let l = weights.layers.length - 1; l >= 0; l--) {
      const layer = weights.layers[l]!;
      const result = tidy(tf, () => {
        const cache = caches[l] ?? layerForward(ops, config, frame, layer, { x: inputs[l]! }).cache;
        return layerBackward(ops, config, frame, layer, cache, dx);
      });
      tf.dispose([caches[l] ?? inputs[l]!, dx] as never);
      dx = result.dx;
      layers.unshift(result.grads);
    }
    const { head, value, valueBias } = grads;
    return {
      embed: ops.segmentSum(dx, ids, config.vocabSize),
      layers,
      ...(head && { head }),
      ...(value && { value }),
      ...(valueBias && { valueBias }),
    };
  });
}

const lastDelta = (ops: Ops, { delta }: Stream, reads: Tensor): Tensor | undefined =>
  delta && ops.gather(delta, reads);

function frameOf(ops: Ops, config: ModelConfig, input: PassInput): Frame {
  const { tf } = ops;
  const { depth_N, keys } = input;
  const deepest = depth_N.reduce((a, b) => Math.max(a, b), 0);
  const { positions, cos_Pf, sin_Pf } = positionTables(config, deepest + 1);
  const tables = {
    cos: tf.tensor(cos_Pf, [positions, config.headDim / 2]),
    sin: tf.tensor(sin_Pf, [positions, config.headDim / 2]),
  };
  const rotary = (depth: Int32Array): Rotary => ({ position: tf.tensor1d(depth, 'int32'), ...tables });
  return {
    N: depth_N.length,
    keys,
    attend: attendWith(ops, config, input.visibility),
    queryRotary: rotary(depth_N),
    keyRotary: rotary(depth_N.subarray(0, keys)),
  };
}

/** tf.tidy with a type for structured results (tfjs walks any nesting of objects and arrays). */
export function tidy<R>(tf: Ops['tf'], f: () => R): R {
  return tf.tidy(f as () => never) as R;
}
