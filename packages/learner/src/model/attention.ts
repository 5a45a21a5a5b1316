import type { Tensor } from '../tf/load.js';
import type { Ops } from '../tf/ops.js';
import type { Attend } from '../tf/tree-attention.js';
import type { ModelConfig } from './config.js';
import type { FusedLayer } from './fused.js';
import { normalise, normaliseGrad } from './norm.js';

/**
 * Constant arrays of one pass. Tokens come first, then (a history critic's) query-only states: N states, of which the first
 * `keys` are keys.
 */
export interface Frame {
  N: number;
  keys: number;
  attend: Attend;
  /** [N, 1, h] */
  cos: Tensor;
  signedSin: Tensor;
}

export interface AttentionCache {
  /** q and k before their gain, [N, H+K, h], and the scale [N, H+K, 1] of their norm; only where a family normalises. */
  unit?: Tensor;
  scale?: Tensor;
  q: Tensor;
  k: Tensor;
  v: Tensor;
  /** [N, H, h] */
  out: Tensor;
  /** [N, H] */
  lse: Tensor;
}

/**
 * Attention over packed trees with grouped heads, q/k norms where the family has them, and rotary positions, from the joint
 * projection [N, A·h] to the heads' outputs [N, H·h].
 */
export function attention(
  ops: Ops,
  config: ModelConfig,
  frame: Frame,
  layer: FusedLayer,
  qkv: Tensor,
): { merged: Tensor; cache: AttentionCache } {
  const { heads: H, kvHeads: K, headDim: h, normEps } = config;
  const { N, keys, cos, signedSin } = frame;
  const byHead = ops.reshape(qkv, [N, H + 2 * K, h]);
  const [projected, vAll] = ops.split(byHead, [H + K, K], 1) as [Tensor, Tensor];
  let qk = projected;
  let norm: { unit: Tensor; scale: Tensor } | undefined;
  if (layer.qkGain) {
    norm = normalise(ops, projected, normEps);
    qk = ops.mul(norm.unit, layer.qkGain);
  }
  const rotated = ops.add(ops.mul(qk, cos), ops.mul(ops.roll(qk, h / 2, 2), signedSin));
  const [q, kAll] = ops.split(rotated, [H, K], 1) as [Tensor, Tensor];
  const k = first(ops, kAll, keys);
  const v = first(ops, vAll, keys);
  const { out, lse } = frame.attend.forward({ q, k, v });
  return { merged: ops.reshape(out, [N, H * h]), cache: { ...norm, q, k, v, out, lse } };
}

/** ∂qkv [N, A·h] and, where q and k are normalised, their gains' gradient [H+K, h], from ∂merged. */
export function attentionGrad(
  ops: Ops,
  config: ModelConfig,
  frame: Frame,
  layer: FusedLayer,
  cache: AttentionCache,
  dMerged: Tensor,
): { dQkv: Tensor; dGain?: Tensor } {
  const { heads: H, kvHeads: K, headDim: h } = config;
  const { N, keys, cos, signedSin } = frame;
  const dOut = ops.reshape(dMerged, [N, H, h]);
  const { dq, dk, dv } = frame.attend.backward(cache, cache, dOut);
  const dRotated = ops.concat([dq, padded(ops, dk, N - keys)], 1);
  const dqk = ops.add(ops.mul(dRotated, cos), ops.roll(ops.mul(dRotated, signedSin), h / 2, 2));
  const dvAll = padded(ops, dv, N - keys);
  const join = (d: Tensor): Tensor => ops.reshape(ops.concat([d, dvAll], 1), [N, (H + 2 * K) * h]);
  if (!layer.qkGain || !cache.unit || !cache.scale) return { dQkv: join(dqk) };
  const dGain = ops.reshape(ops.sum(ops.reshape(ops.mul(dqk, cache.unit), [N, (H + K) * h]), [0]), [
    H + K,
    h,
  ]);
  const dUnit = ops.mul(dqk, layer.qkGain);
  const dot = ops.mul(dUnit, cache.unit);
  return { dQkv: join(normaliseGrad(ops, cache.unit, cache.scale, dUnit, dot)), dGain };
}

const first = (ops: Ops, x: Tensor, rows: number): Tensor =>
  x.shape[0] === rows ? x : ops.split(x, [rows, x.shape[0]! - rows], 0)[0]!;

const padded = (ops: Ops, x: Tensor, rows: number): Tensor =>
  rows === 0 ? x : ops.concat([x, ops.tf.zeros([rows, ...x.shape.slice(1)])], 0);
