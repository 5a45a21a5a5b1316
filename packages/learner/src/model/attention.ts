import type { Ops } from '../tf/ops.js';
import type { Tensor } from '../tf/load.js';
import type { ModelConfig } from './config.js';
import type { FusedLayer } from './fused.js';
import { normalise, normaliseGrad } from './norm.js';

/** Sizes and constant arrays of one micro-batch: B rows of T tokens, N = B·T. */
export interface Frame {
  B: number;
  T: number;
  /** [1, 1, T, h] */
  cos: Tensor;
  signedSin: Tensor;
  /** [1, 1, G·T, T], G = query heads per key head. */
  mask: Tensor;
}

export interface AttentionCache {
  /** n, scale: q and k after their norm, [B, H+K, T, h] and [.., 1]. */
  n: Tensor;
  scale: Tensor;
  /** Rotation with the gains in it, [1, H+K, T, h]. */
  cosGain: Tensor;
  sinGain: Tensor;
  q: Tensor;
  k: Tensor;
  v: Tensor;
  /** [B, K, G·T, T] */
  probs: Tensor;
  /** [B, K, G·T, h] */
  out: Tensor;
}

/**
 * Causal attention with grouped heads, q/k norms and rotary positions, from the joint projection [N, A·h] to the heads'
 * outputs [N, H·h]. The G query heads of one key head stand below each other as G·T queries: no key is ever repeated.
 */
export function attention(
  ops: Ops,
  config: ModelConfig,
  frame: Frame,
  layer: FusedLayer,
  qkv: Tensor,
): { merged: Tensor; cache: AttentionCache } {
  const { heads: H, kvHeads: K, headDim: h, normEps } = config;
  const { B, T } = frame;
  const G = H / K;
  const byHead = ops.transpose(ops.reshape(qkv, [B, T, H + 2 * K, h]), [0, 2, 1, 3]);
  const [qk, v] = ops.split(byHead, [H + K, K], 1) as [Tensor, Tensor];
  const { unit: n, scale } = normalise(ops, qk, normEps);
  const cosGain = ops.mul(layer.qkGain, frame.cos);
  const sinGain = ops.mul(layer.qkGainRolled, frame.signedSin);
  const rotated = ops.add(ops.mul(n, cosGain), ops.mul(ops.roll(n, h / 2, 3), sinGain));
  const [qFlat, k] = ops.split(rotated, [H, K], 1) as [Tensor, Tensor];
  const q = ops.reshape(qFlat, [B, K, G * T, h]);
  const probs = ops.softmax(ops.add(ops.batchMatMul(q, k, false, true), frame.mask));
  const out = ops.batchMatMul(probs, v);
  const merged = ops.reshape(ops.transpose(ops.reshape(out, [B, H, T, h]), [0, 2, 1, 3]), [B * T, H * h]);
  return { merged, cache: { n, scale, cosGain, sinGain, q, k, v, probs, out } };
}

/** ∂qkv [N, A·h] and Σ n·∂n [H+K, h] from ∂merged. */
export function attentionGrad(
  ops: Ops,
  config: ModelConfig,
  frame: Frame,
  cache: AttentionCache,
  dMerged: Tensor,
): { dQkv: Tensor; dGain: Tensor } {
  const { heads: H, kvHeads: K, headDim: h } = config;
  const { B, T } = frame;
  const G = H / K;
  const { n, scale, cosGain, sinGain, q, k, v, probs, out } = cache;
  const dOut = ops.reshape(ops.transpose(ops.reshape(dMerged, [B, T, H, h]), [0, 2, 1, 3]), [B, K, G * T, h]);
  // Softmax backward: dS = P·(dP − Σ_h dO·O).
  const delta = ops.sum(ops.mul(dOut, out), [3], true);
  const dScores = ops.mul(probs, ops.sub(ops.batchMatMul(dOut, v, false, true), delta));
  const dq = ops.reshape(ops.batchMatMul(dScores, k), [B, H, T, h]);
  // Transposing the small operand is about 1.7 times faster than transposing the T×T one.
  const small = [0, 1, 3, 2];
  const dk = ops.transpose(ops.batchMatMul(q, dScores, true), small);
  const dv = ops.transpose(ops.batchMatMul(dOut, probs, true), small);
  const dRotated = ops.concat([dq, dk], 1);
  const dn = ops.add(ops.mul(dRotated, cosGain), ops.roll(ops.mul(dRotated, sinGain), h / 2, 3));
  const dot = ops.mul(dn, n);
  const dGain = ops.sum(
    ops.reshape(ops.sum(ops.reshape(dot, [B, (H + K) * T * h]), [0]), [H + K, T, h]),
    [1],
  );
  const dqk = normaliseGrad(ops, n, scale, dn, dot);
  const byHead = ops.concat([dqk, dv], 1);
  const dQkv = ops.reshape(ops.transpose(byHead, [0, 2, 1, 3]), [B * T, (H + 2 * K) * h]);
  return { dQkv, dGain };
}
