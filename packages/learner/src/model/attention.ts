import { kernelsOf, type Rotary } from '../tf/kernels.js';
import type { Tensor } from '../tf/load.js';
import type { Ops } from '../tf/ops.js';
import type { Attend } from '../tf/tree-attention.js';
import type { ModelConfig } from './config.js';
import type { FusedLayer } from './fused.js';

/**
 * Constants of one pass. Tokens come first, then (a history critic's) query-only states: N states, of which the first `keys`
 * are keys.
 */
export interface Frame {
  N: number;
  keys: number;
  attend: Attend;
  queryRotary: Rotary;
  keyRotary: Rotary;
}

export interface AttentionCache {
  /** q and k before their norm, [.., heads, h], and what its gradient takes; only where a family normalises. */
  qRaw?: Tensor;
  qScale?: Tensor;
  kRaw?: Tensor;
  kScale?: Tensor;
  q: Tensor;
  k: Tensor;
  v: Tensor;
  /** [N, H, h] */
  out: Tensor;
  /** [N, H] */
  lse: Tensor;
}

/**
 * Attention over packed trees with grouped heads, q/k norms where the family has them, and rotary positions, from normalised
 * states [N, d] to the heads' outputs [N, H·h].
 */
export function attention(
  ops: Ops,
  config: ModelConfig,
  frame: Frame,
  layer: FusedLayer,
  unit: Tensor,
): { merged: Tensor; cache: AttentionCache } {
  const { heads: H, kvHeads: K, headDim: h, normEps } = config;
  const { N, keys } = frame;
  const kernels = kernelsOf(ops);
  const seen = keyRows(ops, unit, keys);
  const project = (x: Tensor, weight: Tensor, heads: number): Tensor =>
    ops.reshape(ops.matMul(x, weight, false, true), [x.shape[0]!, heads, h]);
  const qRaw = project(unit, layer.q, H);
  const kRaw = project(seen, layer.k, K);
  const v = project(seen, layer.v, K);
  const qNorm = layer.qGain && kernels.headNorm(qRaw, normEps, layer.qGain);
  const kNorm = layer.kGain && kernels.headNorm(kRaw, normEps, layer.kGain);
  const q = kernels.rope(qNorm?.y ?? qRaw, frame.queryRotary);
  const k = kernels.rope(kNorm?.y ?? kRaw, frame.keyRotary);
  const { out, lse } = frame.attend.forward({ q, k, v });
  const norms = qNorm && kNorm && { qRaw, qScale: qNorm.scale, kRaw, kScale: kNorm.scale };
  return { merged: ops.reshape(out, [N, H * h]), cache: { ...norms, q, k, v, out, lse } };
}

/** ∂unit [N, d] and the gradients of the projections and gains, from ∂merged. */
export function attentionGrad(
  ops: Ops,
  config: ModelConfig,
  frame: Frame,
  layer: FusedLayer,
  cache: AttentionCache,
  unit: Tensor,
  dMerged: Tensor,
): { dUnit: Tensor; grads: Pick<FusedLayer, 'q' | 'k' | 'v' | 'qGain' | 'kGain'> } {
  const { heads: H, kvHeads: K, headDim: h } = config;
  const { N, keys } = frame;
  const kernels = kernelsOf(ops);
  const { dq, dk, dv } = frame.attend.backward(cache, cache, ops.reshape(dMerged, [N, H, h]));
  let dqRaw = kernels.rope(dq, frame.queryRotary, true);
  let dkRaw = kernels.rope(dk, frame.keyRotary, true);
  const gains: { qGain?: Tensor; kGain?: Tensor } = {};
  if (layer.qGain && layer.kGain) {
    const q = kernels.headNormGrad(cache.qRaw!, cache.qScale!, layer.qGain, dqRaw);
    const k = kernels.headNormGrad(cache.kRaw!, cache.kScale!, layer.kGain, dkRaw);
    [dqRaw, dkRaw] = [q.gradX, k.gradX];
    [gains.qGain, gains.kGain] = [q.gradGain, k.gradGain];
  }
  const flat = (x: Tensor, heads: number): Tensor => ops.reshape(x, [x.shape[0]!, heads * h]);
  const [dQ, dK, dV] = [flat(dqRaw, H), flat(dkRaw, K), flat(dv, K)];
  const seen = keyRows(ops, unit, keys);
  const throughKeys = ops.add(ops.matMul(dK, layer.k), ops.matMul(dV, layer.v));
  const dUnit = ops.add(
    ops.matMul(dQ, layer.q),
    keys === N ? throughKeys : ops.concat([throughKeys, ops.tf.zeros([N - keys, unit.shape[1]!])], 0),
  );
  return {
    dUnit,
    grads: {
      q: ops.matMul(dQ, unit, true),
      k: ops.matMul(dK, seen, true),
      v: ops.matMul(dV, seen, true),
      ...gains,
    },
  };
}

const keyRows = (ops: Ops, x: Tensor, keys: number): Tensor =>
  x.shape[0] === keys ? x : ops.slice(x, [0, 0], [keys, x.shape[1]!]);
