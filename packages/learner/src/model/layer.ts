import { kernelsOf } from '../tf/kernels.js';
import type { Tensor } from '../tf/load.js';
import type { Ops } from '../tf/ops.js';
import { attention, attentionGrad, type AttentionCache, type Frame } from './attention.js';
import type { ModelConfig } from './config.js';
import type { FusedLayer } from './fused.js';

/** What a layer reads, [N, d]: the residual stream as it stands is x + delta. */
export interface Stream {
  x: Tensor;
  /** What the layer before adds: the sum is taken together with the norm that reads it. */
  delta?: Tensor;
}

/** What the backward pass of a layer needs from its forward pass. */
export interface LayerCache {
  attention: AttentionCache;
  unit1: Tensor;
  scale1: Tensor;
  merged: Tensor;
  unit2: Tensor;
  scale2: Tensor;
  gate: Tensor;
  up: Tensor;
  /** silu(gate)·up */
  inner: Tensor;
}

/** + attention, then + SwiGLU. `input`: the stream that was read, summed. */
export function layerForward(
  ops: Ops,
  config: ModelConfig,
  frame: Frame,
  layer: FusedLayer,
  stream: Stream,
): { output: Required<Stream>; input: Tensor; cache: LayerCache } {
  const kernels = kernelsOf(ops);
  const { unit: unit1, scale: scale1, sum: input } = kernels.norm(stream.x, config.normEps, stream.delta);
  const { merged, cache } = attention(ops, config, frame, layer, unit1);
  const attended = ops.matMul(merged, layer.o, false, true);
  const { unit: unit2, scale: scale2, sum: middle } = kernels.norm(input, config.normEps, attended);
  const gate = ops.matMul(unit2, layer.gate, false, true);
  const up = ops.matMul(unit2, layer.up, false, true);
  const inner = kernels.swiglu(gate, up);
  return {
    output: { x: middle, delta: ops.matMul(inner, layer.down, false, true) },
    input,
    cache: { attention: cache, unit1, scale1, merged, unit2, scale2, gate, up, inner },
  };
}

/** ∂input and the layer's weight gradients from ∂output (of the sum x + delta). */
export function layerBackward(
  ops: Ops,
  config: ModelConfig,
  frame: Frame,
  layer: FusedLayer,
  cache: LayerCache,
  dy: Tensor,
): { dx: Tensor; grads: FusedLayer } {
  const kernels = kernelsOf(ops);
  const { unit1, scale1, merged, unit2, scale2, gate, up, inner } = cache;
  const { gradGate: dGate, gradUp: dUp } = kernels.swigluGrad(gate, up, ops.matMul(dy, layer.down));
  const dUnit2 = ops.add(ops.matMul(dGate, layer.gate), ops.matMul(dUp, layer.up));
  const dMiddle = kernels.normGrad(unit2, scale2, dUnit2, dy);
  const dMerged = ops.matMul(dMiddle, layer.o);
  const { dUnit: dUnit1, grads } = attentionGrad(ops, config, frame, layer, cache.attention, unit1, dMerged);
  return {
    dx: kernels.normGrad(unit1, scale1, dUnit1, dMiddle),
    grads: {
      ...grads,
      o: ops.matMul(dMiddle, merged, true),
      gate: ops.matMul(dGate, unit2, true),
      up: ops.matMul(dUp, unit2, true),
      down: ops.matMul(dy, inner, true),
    },
  };
}
