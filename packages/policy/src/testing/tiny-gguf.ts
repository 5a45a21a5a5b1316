import { writeFileAtomic } from '@treeward/base';
import { tensorShapes, type TinyConfig, type Weights } from './tiny-model.js';

const ALIGNMENT = 32;
const TYPE = { u32: 4, i32: 5, f32: 6, string: 8, array: 9 } as const;

/** The least GGUF (version 3, f32, qwen3) that llama.cpp accepts: a fixture, not the exporter, which the learner has. */
export function writeTinyGguf(path: string, config: TinyConfig, weights: Weights): void {
  const header: Buffer[] = [];
  const u32 = (n: number): Buffer => Buffer.from(Uint32Array.of(n).buffer);
  const u64 = (n: number): Buffer => Buffer.from(BigUint64Array.of(BigInt(n)).buffer);
  const text = (s: string): Buffer => Buffer.concat([u64(Buffer.byteLength(s)), Buffer.from(s)]);
  const fields: Buffer[] = [];
  const field = (key: string, type: number, ...value: Buffer[]): void => {
    fields.push(Buffer.concat([text(key), u32(type), ...value]));
  };
  const count = (key: string, n: number): void => field(key, TYPE.u32, u32(n));
  const real = (key: string, x: number): void => field(key, TYPE.f32, Buffer.from(Float32Array.of(x).buffer));

  field('general.architecture', TYPE.string, text('qwen3'));
  field('general.name', TYPE.string, text('tiny'));
  count('general.alignment', ALIGNMENT);
  count('qwen3.block_count', config.num_hidden_layers);
  count('qwen3.context_length', 1024);
  count('qwen3.embedding_length', config.hidden_size);
  count('qwen3.feed_forward_length', config.intermediate_size);
  count('qwen3.attention.head_count', config.num_attention_heads);
  count('qwen3.attention.head_count_kv', config.num_key_value_heads);
  count('qwen3.attention.key_length', config.head_dim);
  count('qwen3.attention.value_length', config.head_dim);
  real('qwen3.attention.layer_norm_rms_epsilon', config.rms_norm_eps);
  real('qwen3.rope.freq_base', config.rope_theta);
  // llama.cpp wants a tokenizer although only ids go in and out: any strings and one merge do.
  const vocab = Array.from({ length: config.vocab_size }, (_, i) =>
    text(i === 0 ? 'a' : i === 1 ? 'b' : `<|${i}|>`),
  );
  field('tokenizer.ggml.model', TYPE.string, text('gpt2'));
  field('tokenizer.ggml.pre', TYPE.string, text('qwen2'));
  field('tokenizer.ggml.tokens', TYPE.array, u32(TYPE.string), u64(vocab.length), ...vocab);
  field(
    'tokenizer.ggml.token_type',
    TYPE.array,
    u32(TYPE.i32),
    u64(vocab.length),
    ...vocab.map(() => u32(1)),
  );
  field('tokenizer.ggml.merges', TYPE.array, u32(TYPE.string), u64(1), text('a b'));
  count('tokenizer.ggml.eos_token_id', config.vocab_size - 1);
  count('tokenizer.ggml.bos_token_id', config.vocab_size - 2);

  const shapes = tensorShapes(config);
  header.push(Buffer.from('GGUF'), u32(3), u64(shapes.length), u64(fields.length), ...fields);
  const data: Buffer[] = [];
  let offset = 0;
  for (const [name, shape] of shapes) {
    const values = weights.get(name)?.data;
    if (!(values instanceof Float32Array)) throw new Error(`no f32 tensor ${name}`);
    const raw = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    const padded = Buffer.concat([raw, Buffer.alloc(-raw.length & (ALIGNMENT - 1))]);
    // Dimensions from the fastest-varying one; type 0 is f32.
    header.push(text(ggufName(name)), u32(shape.length), ...shape.toReversed().map(u64), u32(0), u64(offset));
    data.push(padded);
    offset += padded.length;
  }
  const head = Buffer.concat(header);
  writeFileAtomic(path, Buffer.concat([head, Buffer.alloc(-head.length & (ALIGNMENT - 1)), ...data]));
}

const RENAMED: Record<string, string> = {
  input_layernorm: 'attn_norm',
  post_attention_layernorm: 'ffn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};

function ggufName(name: string): string {
  const layer = /^model\.layers\.(\d+)\.(.+)\.weight$/.exec(name);
  if (layer) return `blk.${layer[1]}.${RENAMED[layer[2]!]}.weight`;
  if (name === 'model.embed_tokens.weight') return 'token_embd.weight';
  return name === 'model.norm.weight' ? 'output_norm.weight' : 'output.weight';
}
