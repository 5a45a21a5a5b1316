import type { Ops } from '../tf/ops.js';
import type { Tensor } from '../tf/load.js';
import { readsTokens, readsValue, type ModelConfig } from './config.js';
import { EMBED, FINAL_NORM, HEAD, layerParam, VALUE_BIAS, VALUE_WEIGHT } from './params.js';

export type Params = Map<string, Tensor>;

/**
 * Weights in the form the passes compute with. The gain of a norm is multiplied into the matrices that read it, and
 * matrices that read the same states are one: fewer kernels over token-sized arrays, at the price of a few over
 * weight-sized ones per step.
 *
 * Legend: V vocabulary, d hidden, H query heads, K key/value heads, A = H + 2K, h head size, f feed-forward size.
 */
export interface FusedLayer {
  /** [A·h, d], with the attention norm's gain. */
  qkv: Tensor;
  /** [1, H+K, h]: gains of the q and k norms per head. Absent for families without them. */
  qkGain?: Tensor;
  /** [d, H·h] */
  o: Tensor;
  /** [2f, d], gate above up, with the feed-forward norm's gain. */
  gateUp: Tensor;
  /** [d, f] */
  down: Tensor;
}

export interface FusedWeights {
  /** [V, d], scaled. */
  embed: Tensor;
  layers: FusedLayer[];
  /** [V, d], with the final norm's gain. */
  head?: Tensor;
  /** [1, d], with the final norm's gain. */
  value?: Tensor;
  /** [1] */
  valueBias?: Tensor;
}

/** Gradients of `FusedWeights`; `qkGain` is [H+K, h]. An output that had no loss has none. */
export interface FusedGrads {
  embed: Tensor;
  layers: FusedLayer[];
  head?: Tensor;
  value?: Tensor;
  valueBias?: Tensor;
}

const get = (params: Params, name: string): Tensor => {
  const tensor = params.get(name);
  if (!tensor) throw new Error(`no parameter ${name}`);
  return tensor;
};

/** The caller owns the result (inside `tidy`, return it). */
export function fuse(ops: Ops, config: ModelConfig, params: Params): FusedWeights {
  const { headDim: h, heads, kvHeads } = config;
  const finalGain = get(params, FINAL_NORM);
  const embed =
    config.tie === 'untied'
      ? ops.alias(get(params, EMBED))
      : ops.mul(get(params, HEAD), ops.constant(config.tie));
  const layers = Array.from({ length: config.layers }, (_, l): FusedLayer => {
    const p = (name: string): Tensor => get(params, layerParam(l, name));
    const qkv = ops.concat([p('self_attn.q_proj'), p('self_attn.k_proj'), p('self_attn.v_proj')], 0);
    const gateUp = ops.concat([p('mlp.gate_proj'), p('mlp.up_proj')], 0);
    const layer: FusedLayer = {
      qkv: ops.mul(qkv, p('input_layernorm')),
      o: ops.alias(p('self_attn.o_proj')),
      gateUp: ops.mul(gateUp, p('post_attention_layernorm')),
      down: ops.alias(p('mlp.down_proj')),
    };
    if (config.family === 'qwen3') {
      const rows = Array.from({ length: heads + kvHeads }, (_, a) =>
        p(a < heads ? 'self_attn.q_norm' : 'self_attn.k_norm'),
      );
      layer.qkGain = ops.reshape(ops.concat(rows, 0), [1, heads + kvHeads, h]);
    }
    return layer;
  });
  return {
    embed,
    layers,
    ...(readsTokens(config) && { head: ops.mul(get(params, HEAD), finalGain) }),
    ...(readsValue(config) && {
      value: ops.mul(get(params, VALUE_WEIGHT), finalGain),
      valueBias: ops.alias(get(params, VALUE_BIAS)),
    }),
  };
}

/**
 * Gradients of the parameters from those of the fused weights. For W' = W·g (g along the columns): ∂W = ∂W'·g and
 * ∂g = Σ_rows ∂W'·W. A parameter whose output had no loss is not in the result.
 */
export function unfuse(ops: Ops, config: ModelConfig, params: Params, grads: FusedGrads): Params {
  const { headDim: h, heads, kvHeads, ffnSize: f } = config;
  const out: Params = new Map();
  /** Returns what it adds to the gain. */
  const folded = (gradFused: Tensor, name: string, gain: Tensor): Tensor => {
    out.set(name, ops.mul(gradFused, gain));
    return ops.sum(ops.mul(gradFused, get(params, name)), [0]);
  };
  const total = (parts: readonly Tensor[]): Tensor => parts.reduce((a, b) => ops.add(a, b));
  grads.layers.forEach((g, l) => {
    const n = (name: string): string => layerParam(l, name);
    const attentionGain = get(params, n('input_layernorm'));
    const qkv = ops.split(g.qkv, [heads * h, kvHeads * h, kvHeads * h], 0);
    out.set(
      n('input_layernorm'),
      total(['q', 'k', 'v'].map((x, i) => folded(qkv[i]!, n(`self_attn.${x}_proj`), attentionGain))),
    );
    if (g.qkGain) {
      const [q, k] = ops.split(g.qkGain, [heads, kvHeads], 0) as [Tensor, Tensor];
      out.set(n('self_attn.q_norm'), ops.sum(q, [0]));
      out.set(n('self_attn.k_norm'), ops.sum(k, [0]));
    }
    out.set(n('self_attn.o_proj'), ops.alias(g.o));
    const ffnGain = get(params, n('post_attention_layernorm'));
    const gateUp = ops.split(g.gateUp, [f, f], 0);
    out.set(
      n('post_attention_layernorm'),
      total(['gate', 'up'].map((x, i) => folded(gateUp[i]!, n(`mlp.${x}_proj`), ffnGain))),
    );
    out.set(n('mlp.down_proj'), ops.alias(g.down));
  });
  const finalGain = get(params, FINAL_NORM);
  const gains: Tensor[] = [];
  if (grads.head) gains.push(folded(grads.head, HEAD, finalGain));
  if (grads.value) gains.push(folded(grads.value, VALUE_WEIGHT, finalGain));
  if (grads.valueBias) out.set(VALUE_BIAS, ops.alias(grads.valueBias));
  out.set(FINAL_NORM, total(gains));
  if (config.tie === 'untied') out.set(EMBED, ops.alias(grads.embed));
  else {
    const scaled = ops.mul(grads.embed, ops.constant(config.tie));
    out.set(HEAD, out.has(HEAD) ? ops.add(out.get(HEAD)!, scaled) : scaled);
  }
  return out;
}
