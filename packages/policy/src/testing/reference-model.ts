import type { TinyConfig, Weights } from './tiny-model.js';

/**
 * Qwen3 in plain double precision, one token after the other, nothing clever: what llama's numbers are checked against.
 *
 * @returns log-probabilities of the next token after each position, [T][vocab], with `banned` ids left out
 */
export function referenceLogprobs(
  config: TinyConfig,
  weights: Weights,
  ids: readonly number[],
  options: { temperature?: number; banned?: readonly number[] } = {},
): Float64Array[] {
  const { temperature = 1, banned = [] } = options;
  const H = config.num_attention_heads;
  const KV = config.num_key_value_heads;
  const D = config.head_dim;
  const tensor = (name: string): ArrayLike<number> => weights.get(name)!.data;
  const keys: number[][][] = []; // [layer][t][KV * D]
  const values: number[][][] = [];

  return ids.map((id, t) => {
    const d = config.hidden_size;
    let x = Array.from({ length: d }, (_, i) => tensor('model.embed_tokens.weight')[id * d + i]!);
    for (let layer = 0; layer < config.num_hidden_layers; layer++) {
      const w = (name: string): ArrayLike<number> => tensor(`model.layers.${layer}.${name}.weight`);
      const h = rmsNorm(x, w('input_layernorm'), config.rms_norm_eps);
      const heads = (flat: number[], norm: string): number[] =>
        Array.from({ length: flat.length / D }, (_, k) =>
          rotate(rmsNorm(flat.slice(k * D, (k + 1) * D), w(norm), config.rms_norm_eps), t, config.rope_theta),
        ).flat();
      const q = heads(matmul(w('self_attn.q_proj'), h), 'self_attn.q_norm');
      (keys[layer] ??= []).push(heads(matmul(w('self_attn.k_proj'), h), 'self_attn.k_norm'));
      (values[layer] ??= []).push(matmul(w('self_attn.v_proj'), h));
      const attended: number[] = [];
      for (let head = 0; head < H; head++) {
        const at = Math.floor(head / (H / KV)) * D;
        const scores = keys[layer]!.map((k) => {
          let dot = 0;
          for (let i = 0; i < D; i++) dot += q[head * D + i]! * k[at + i]!;
          return dot / Math.sqrt(D);
        });
        const weightsOf = logSoftmax(scores).map(Math.exp);
        for (let i = 0; i < D; i++) {
          attended.push(values[layer]!.reduce((sum, v, s) => sum + weightsOf[s]! * v[at + i]!, 0));
        }
      }
      x = add(x, matmul(w('self_attn.o_proj'), attended));
      const m = rmsNorm(x, w('post_attention_layernorm'), config.rms_norm_eps);
      const up = matmul(w('mlp.up_proj'), m);
      const gated = matmul(w('mlp.gate_proj'), m).map((g, i) => (g / (1 + Math.exp(-g))) * up[i]!);
      x = add(x, matmul(w('mlp.down_proj'), gated));
    }
    const logits = matmul(
      tensor('lm_head.weight'),
      rmsNorm(x, tensor('model.norm.weight'), config.rms_norm_eps),
    );
    for (const id of banned) logits[id] = -Infinity;
    return Float64Array.from(logSoftmax(logits.map((logit) => logit / temperature)));
  });
}

/** `weight` is [out, in]. */
function matmul(weight: ArrayLike<number>, x: readonly number[]): number[] {
  return Array.from({ length: weight.length / x.length }, (_, row) => {
    let sum = 0;
    for (let i = 0; i < x.length; i++) sum += weight[row * x.length + i]! * x[i]!;
    return sum;
  });
}

function rmsNorm(x: readonly number[], gain: ArrayLike<number>, eps: number): number[] {
  const scale = 1 / Math.sqrt(x.reduce((sum, v) => sum + v * v, 0) / x.length + eps);
  return x.map((v, i) => v * scale * gain[i]!);
}

/** Rotary embedding, halves paired. */
function rotate(x: readonly number[], position: number, theta: number): number[] {
  const half = x.length / 2;
  return x.map((v, i) => {
    const angle = position * theta ** (-(i % half) / half);
    const other = i < half ? -x[i + half]! : x[i - half]!;
    return v * Math.cos(angle) + other * Math.sin(angle);
  });
}

function logSoftmax(x: readonly number[]): number[] {
  const max = Math.max(...x);
  const log = max + Math.log(x.reduce((sum, v) => sum + Math.exp(v - max), 0));
  return x.map((v) => v - log);
}

const add = (a: readonly number[], b: readonly number[]): number[] => a.map((v, i) => v + b[i]!);
