import type { Tensor } from '../tf/load.js';
import type { Ops } from '../tf/ops.js';
import { attention, attentionGrad, type AttentionCache, type Frame } from './attention.js';
import type { ModelConfig } from './config.js';
import type { FusedLayer } from './fused.js';
import { normalise, normaliseGrad } from './norm.js';

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
  /** sigmoid(gate), gate·sigmoid(gate), and that times up. */
  sigmoid: Tensor;
  silu: Tensor;
  inner: Tensor;
}

/** x + attention, then + SwiGLU; x is [N, d]. */
export function layerForward(
  ops: Ops,
  config: ModelConfig,
  frame: Frame,
  layer: FusedLayer,
  x: Tensor,
): { y: Tensor; cache: LayerCache } {
  const f = config.ffnSize;
  const { unit: unit1, scale: scale1 } = normalise(ops, x, config.normEps);
  const qkv = ops.matMul(unit1, layer.qkv, false, true);
  const { merged, cache } = attention(ops, config, frame, layer, qkv);
  const middle = ops.add(x, ops.matMul(merged, layer.o, false, true));
  const { unit: unit2, scale: scale2 } = normalise(ops, middle, config.normEps);
  const [gate, up] = ops.split(ops.matMul(unit2, layer.gateUp, false, true), [f, f], 1) as [Tensor, Tensor];
  const sigmoid = ops.sigmoid(gate);
  const silu = ops.mul(gate, sigmoid);
  const inner = ops.mul(silu, up);
  const y = ops.add(middle, ops.matMul(inner, layer.down, false, true));
  return {
    y,
    cache: { attention: cache, unit1, scale1, merged, unit2, scale2, gate, up, sigmoid, silu, inner },
  };
}

/** ∂x and the layer's weight gradients from ∂y. */
export function layerBackward(
  ops: Ops,
  config: ModelConfig,
  frame: Frame,
  layer: FusedLayer,
  cache: LayerCache,
  dy: Tensor,
): { dx: Tensor; grads: FusedLayer } {
  const { unit1, scale1, merged, unit2, scale2, gate, up, sigmoid, silu, inner } = cache;
  const dInner = ops.matMul(dy, layer.down);
  const dUp = ops.mul(dInner, silu);
  const dSilu = ops.mul(dInner, up);
  const dGate = ops.add(ops.mul(dSilu, sigmoid), ops.mul(gate, ops.sigmoidGrad(sigmoid, dSilu)));
  const dGateUp = ops.concat([dGate, dUp], 1);
  const dUnit2 = ops.matMul(dGateUp, layer.gateUp);
  const dMiddle = ops.add(dy, normaliseGrad(ops, unit2, scale2, dUnit2, ops.mul(dUnit2, unit2)));
  const dMerged = ops.matMul(dMiddle, layer.o);
  const { dQkv, dGain } = attentionGrad(ops, config, frame, layer, cache.attention, dMerged);
  const dUnit1 = ops.matMul(dQkv, layer.qkv);
  const dx = ops.add(dMiddle, normaliseGrad(ops, unit1, scale1, dUnit1, ops.mul(dUnit1, unit1)));
  return {
    dx,
    grads: {
      qkv: ops.matMul(dQkv, unit1, true),
      ...(dGain && { qkGain: dGain }),
      o: ops.matMul(dMiddle, merged, true),
      gateUp: ops.matMul(dGateUp, unit2, true),
      down: ops.matMul(dy, inner, true),
    },
  };
}
