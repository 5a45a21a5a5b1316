import type { Ops } from '../tf/ops.js';
import type { Tensor } from '../tf/load.js';
import { readsTokens, readsValue, type ModelConfig } from './config.js';
import { EMBED, FINAL_NORM, HEAD, layerParam, VALUE_BIAS, VALUE_WEIGHT } from './params.js';

export type Params = Map<string, Tensor>;

/**
 * Weights in the form the passes compute with: the gain of a norm is multiplied into the matrices that read it, so that it
 * costs a pass over weights per step instead of one over tokens.
 *
 * Legend: V vocabulary, d hidden, H query heads, K key/value heads, h head size, f feed-forward size.
 */
export interface FusedLayer {
  /** [H·h, d] and twice [K·h, d], with the attention norm's gain. */
  q: Tensor;
  k: Tensor;
  v: Tensor;
  /** [1, h]: gains of the q and k norms. Absent for families without them. */
  qGain?: Tensor;
  kGain?: Tensor;
  /** [d, H·h] */
  o: Tensor;
  /** [f, d], with the feed-forward norm's gain. */
  gate: Tensor;
  up: Tensor;
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

/** Gradients of `FusedWeights`. An output that had no loss has none. */
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
  const { headDim: h } = config;
  const finalGain = get(params, FINAL_NORM);
  const embed =
    config.tie === 'untied'
      ? ops.alias(get(params, EMBED))
      : ops.mul(get(params, HEAD), ops.constant(config.tie));
  const layers = Array.from({ length: config.layers }, (_, l): FusedLayer => {
    const p = (name: string): Tensor => get(params, layerParam(l, name));
    const attentionGain = p('input_layernorm');
    const ffnGain = p('post_attention_layernorm');
    const layer: FusedLayer = {
      q: ops.mul(p('self_attn.q_proj'), attentionGain),
      k: ops.mul(p('self_attn.k_proj'), attentionGain),
      v: ops.mul(p('self_attn.v_proj'), attentionGain),
      o: ops.alias(p('self_attn.o_proj')),
      gate: ops.mul(p('mlp.gate_proj'), ffnGain),
      up: ops.mul(p('mlp.up_proj'), ffnGain),
      down: ops.alias(p('mlp.down_proj')),
    };
    if (config.family === 'qwen3') {
      layer.qGain = ops.reshape(p('self_attn.q_norm'), [1, h]);
      layer.kGain = ops.reshape(p('self_attn.k_norm'), [1, h]);
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
  const { headDim: h } = config;
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
    out.set(
      n('input_layernorm'),
      total((['q', 'k', 'v'] as const).map((x) => folded(g[x], n(`self_attn.${x}_proj`), attentionGain))),
    );
    if (g.qGain && g.kGain) {
      out.set(n('self_attn.q_norm'), ops.reshape(g.qGain, [h]));
      out.set(n('self_attn.k_norm'), ops.reshape(g.kGain, [h]));
    }
    out.set(n('self_attn.o_proj'), ops.alias(g.o));
    const ffnGain = get(params, n('post_attention_layernorm'));
    out.set(
      n('post_attention_layernorm'),
      total((['gate', 'up'] as const).map((x) => folded(g[x], n(`mlp.${x}_proj`), ffnGain))),
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
