import type { Ops } from '../tf/ops.js';
import type { Tensor } from '../tf/load.js';
import type { ModelConfig } from './config.js';
import { EMBED, FINAL_NORM, HEAD, layerParam } from './params.js';

export type Params = Map<string, Tensor>;

/**
 * Weights in the form the passes compute with. The gain of a norm is multiplied into the matrices that read it, and
 * q, k, v are one matrix: fewer kernels over token-sized arrays, at the price of a few over weight-sized ones per step.
 *
 * Legend: V vocabulary, d hidden, H query heads, K key/value heads, A = H + 2K, h head size, f feed-forward size.
 */
export interface FusedLayer {
  /** [A·h, d], with the attention norm's gain. */
  qkv: Tensor;
  /** [1, H+K, 1, h]: gains of the q and k norms per head, the former over sqrt(h). */
  qkGain: Tensor;
  /** The same, rolled by h/2: gains of the rotated half. */
  qkGainRolled: Tensor;
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
  head: Tensor;
}

/** Gradients of `FusedWeights`; `qkGain` is [H+K, h], Σ over tokens of n·∂L/∂n (see `unfuse`). */
export interface FusedGrads {
  embed: Tensor;
  layers: { qkv: Tensor; qkGain: Tensor; o: Tensor; gate: Tensor; up: Tensor; down: Tensor }[];
  head: Tensor;
}

const get = (params: Params, name: string): Tensor => {
  const tensor = params.get(name);
  if (!tensor) throw new Error(`no parameter ${name}`);
  return tensor;
};

/** The caller owns the result (inside `tidy`, return it). */
export function fuse(ops: Ops, config: ModelConfig, params: Params): FusedWeights {
  const { headDim, heads, kvHeads } = config;
  const head = get(params, HEAD);
  const embed = config.tie === 'untied' ? get(params, EMBED) : head;
  const scale = ops.constant(config.tie === 'untied' ? 1 : config.tie);
  const layers = Array.from({ length: config.layers }, (_, l): FusedLayer => {
    const p = (name: string): Tensor => get(params, layerParam(l, name));
    const attentionGain = p('input_layernorm');
    const ffnGain = p('post_attention_layernorm');
    const qGain = ops.mul(p('self_attn.q_norm'), ops.constant(1 / Math.sqrt(headDim)));
    const rows = [
      ...Array.from({ length: heads }, () => qGain),
      ...Array.from({ length: kvHeads }, () => p('self_attn.k_norm')),
    ];
    const qkGain = ops.reshape(ops.concat(rows, 0), [1, heads + kvHeads, 1, headDim]);
    const qkv = ops.concat([p('self_attn.q_proj'), p('self_attn.k_proj'), p('self_attn.v_proj')], 0);
    return {
      qkv: ops.mul(qkv, attentionGain),
      qkGain,
      qkGainRolled: ops.roll(qkGain, headDim / 2, 3),
      o: ops.alias(p('self_attn.o_proj')),
      gate: ops.mul(p('mlp.gate_proj'), ffnGain),
      up: ops.mul(p('mlp.up_proj'), ffnGain),
      down: ops.alias(p('mlp.down_proj')),
    };
  });
  return { embed: ops.mul(embed, scale), layers, head: ops.mul(head, get(params, FINAL_NORM)) };
}

/**
 * Gradients of the parameters from those of the fused weights. For W' = W·g (g along the columns): ∂W = ∂W'·g and
 * ∂g = Σ_rows ∂W'·W. The q and k gains scale n elementwise, so ∂g = Σ n·∂n / g; a gain of exactly 0 gets no gradient.
 */
export function unfuse(ops: Ops, config: ModelConfig, params: Params, grads: FusedGrads): Params {
  const { headDim: h, heads, kvHeads } = config;
  const out: Params = new Map();
  const folded = (gradFused: Tensor, name: string, gain: Tensor): Tensor => {
    out.set(name, ops.mul(gradFused, gain));
    return ops.sum(ops.mul(gradFused, get(params, name)), [0]);
  };
  grads.layers.forEach((g, l) => {
    const n = (name: string): string => layerParam(l, name);
    const attentionGain = get(params, n('input_layernorm'));
    const parts = ops.split(g.qkv, [heads * h, kvHeads * h, kvHeads * h], 0);
    const gains = ['q', 'k', 'v'].map((x, i) => folded(parts[i]!, n(`self_attn.${x}_proj`), attentionGain));
    out.set(n('input_layernorm'), ops.add(ops.add(gains[0]!, gains[1]!), gains[2]!));
    const [q, k] = ops.split(g.qkGain, [heads, kvHeads], 0);
    for (const [x, sum] of [
      ['q', q!],
      ['k', k!],
    ] as const) {
      const name = n(`self_attn.${x}_norm`);
      out.set(name, ops.divNoNan(ops.sum(sum, [0]), get(params, name)));
    }
    out.set(n('self_attn.o_proj'), ops.alias(g.o));
    const ffnGain = get(params, n('post_attention_layernorm'));
    out.set(
      n('post_attention_layernorm'),
      ops.add(folded(g.gate, n('mlp.gate_proj'), ffnGain), folded(g.up, n('mlp.up_proj'), ffnGain)),
    );
    out.set(n('mlp.down_proj'), ops.alias(g.down));
  });
  out.set(FINAL_NORM, folded(grads.head, HEAD, get(params, FINAL_NORM)));
  if (config.tie === 'untied') out.set(EMBED, ops.alias(grads.embed));
  else out.set(HEAD, ops.add(out.get(HEAD)!, ops.mul(grads.embed, ops.constant(config.tie))));
  return out;
}
