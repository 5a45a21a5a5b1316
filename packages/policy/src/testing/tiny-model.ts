import { randomStream, type NamedTensor } from '@treeward/base';

/** A Qwen3 decoder in the fields of Hugging Face's config.json that matter here. */
export interface TinyConfig {
  vocab_size: number;
  hidden_size: number;
  num_hidden_layers: number;
  num_attention_heads: number;
  num_key_value_heads: number;
  head_dim: number;
  intermediate_size: number;
  rope_theta: number;
  rms_norm_eps: number;
}

export const TINY: TinyConfig = {
  vocab_size: 266,
  hidden_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 32,
  intermediate_size: 64,
  rope_theta: 1000,
  rms_norm_eps: 1e-6,
};

export type Weights = ReadonlyMap<string, NamedTensor>;

/** Name and shape ([out, in]) of every tensor, in Hugging Face's naming. */
export function tensorShapes(c: TinyConfig): [name: string, shape: number[]][] {
  const d = c.hidden_size;
  const q = c.num_attention_heads * c.head_dim;
  const kv = c.num_key_value_heads * c.head_dim;
  const layers = Array.from({ length: c.num_hidden_layers }, (_, i): [string, number[]][] => [
    [`model.layers.${i}.input_layernorm.weight`, [d]],
    [`model.layers.${i}.self_attn.q_proj.weight`, [q, d]],
    [`model.layers.${i}.self_attn.k_proj.weight`, [kv, d]],
    [`model.layers.${i}.self_attn.v_proj.weight`, [kv, d]],
    [`model.layers.${i}.self_attn.o_proj.weight`, [d, q]],
    [`model.layers.${i}.self_attn.q_norm.weight`, [c.head_dim]],
    [`model.layers.${i}.self_attn.k_norm.weight`, [c.head_dim]],
    [`model.layers.${i}.post_attention_layernorm.weight`, [d]],
    [`model.layers.${i}.mlp.gate_proj.weight`, [c.intermediate_size, d]],
    [`model.layers.${i}.mlp.up_proj.weight`, [c.intermediate_size, d]],
    [`model.layers.${i}.mlp.down_proj.weight`, [d, c.intermediate_size]],
  ]);
  return [
    ['model.embed_tokens.weight', [c.vocab_size, d]],
    ['model.norm.weight', [d]],
    ['lm_head.weight', [c.vocab_size, d]],
    ...layers.flat(),
  ];
}

/** Random weights with logits spread widely enough (standard deviation about 2) that distributions are not flat. */
export function randomWeights(config: TinyConfig, seed: string): Weights {
  return new Map(
    tensorShapes(config).map(([name, shape]) => {
      const random = randomStream(seed, name);
      const size = shape.reduce((product, n) => product * n, 1);
      const fanIn = shape[1] ?? 1;
      const gain = name === 'lm_head.weight' ? 2 : 1;
      const data = Float32Array.from({ length: size }, () =>
        shape.length === 1 ? 1 + 0.1 * random.normal() : (gain * random.normal()) / Math.sqrt(fanIn),
      );
      return [name, { shape, data }];
    }),
  );
}
