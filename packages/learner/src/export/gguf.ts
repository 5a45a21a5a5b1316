import { writeFileAtomic } from '@treeward/base';
import type { ModelConfig } from '../model/config.js';
import { EMBED, FINAL_NORM, HEAD, layerParam, toCheckpoint, type ParamArrays } from '../model/params.js';

type Value =
  | { type: 'u32'; value: number }
  | { type: 'f32'; value: number }
  | { type: 'string'; value: string }
  | { type: 'strings'; value: readonly string[] }
  | { type: 'i32s'; value: readonly number[] };

const TYPE = { u32: 4, i32: 5, f32: 6, string: 8, array: 9 } as const;
const ALIGNMENT = 32;

/** llama.cpp's names for a layer's arrays. */
const LAYER_NAMES = {
  attn_norm: 'input_layernorm',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_output: 'self_attn.o_proj',
  attn_q_norm: 'self_attn.q_norm',
  attn_k_norm: 'self_attn.k_norm',
  ffn_norm: 'post_attention_layernorm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
} as const;

/**
 * The policy as a GGUF file (version 3, float32, architecture qwen3) for llama.cpp. The vocabulary in it is a placeholder:
 * the engine passes ids in and gets ids out, text is the tokenizer's business.
 */
export function writeGguf(path: string, config: ModelConfig, params: ParamArrays): void {
  const arrays = toCheckpoint(config, params);
  const tensors: [string, string][] = [
    ['token_embd', EMBED],
    ['output_norm', FINAL_NORM],
    ['output', HEAD],
  ];
  for (let l = 0; l < config.layers; l++) {
    for (const [theirs, ours] of Object.entries(LAYER_NAMES)) {
      tensors.push([`blk.${l}.${theirs}`, layerParam(l, ours)]);
    }
  }
  const out = new Writer();
  const fields = Object.entries(metadata(config));
  out.bytes(Buffer.from('GGUF'));
  out.u32(3);
  out.u64(tensors.length);
  out.u64(fields.length);
  for (const [key, value] of fields) {
    out.string(key);
    out.value(value);
  }
  let offset = 0;
  for (const [name, source] of tensors) {
    const { shape, data } = arrays.get(source)!;
    out.string(`${name}.weight`);
    out.u32(shape.length);
    // GGUF lists the contiguous dimension first.
    for (const n of [...shape].reverse()) out.u64(n);
    out.u32(0); // f32
    out.u64(offset);
    offset += Math.ceil(data.byteLength / ALIGNMENT) * ALIGNMENT;
  }
  out.align();
  for (const [, source] of tensors) {
    const { data } = arrays.get(source)!;
    out.bytes(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    out.align();
  }
  writeFileAtomic(path, out.finish());
}

function metadata(config: ModelConfig): Record<string, Value> {
  const u32 = (value: number): Value => ({ type: 'u32', value });
  const tokens = placeholderVocabulary(config.vocabSize);
  return {
    'general.architecture': { type: 'string', value: 'qwen3' },
    'general.name': { type: 'string', value: 'treeward policy' },
    'general.alignment': u32(ALIGNMENT),
    'general.file_type': u32(0),
    'qwen3.block_count': u32(config.layers),
    'qwen3.context_length': u32(config.maxPositions),
    'qwen3.embedding_length': u32(config.hiddenSize),
    'qwen3.feed_forward_length': u32(config.ffnSize),
    'qwen3.attention.head_count': u32(config.heads),
    'qwen3.attention.head_count_kv': u32(config.kvHeads),
    'qwen3.attention.key_length': u32(config.headDim),
    'qwen3.attention.value_length': u32(config.headDim),
    'qwen3.attention.layer_norm_rms_epsilon': { type: 'f32', value: config.normEps },
    'qwen3.rope.freq_base': { type: 'f32', value: config.ropeTheta },
    'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
    'tokenizer.ggml.pre': { type: 'string', value: 'qwen2' },
    'tokenizer.ggml.tokens': { type: 'strings', value: tokens },
    // 1 = normal, 3 = control.
    'tokenizer.ggml.token_type': { type: 'i32s', value: tokens.map((_, i) => (i < 256 ? 1 : 3)) },
    'tokenizer.ggml.merges': { type: 'strings', value: ['a b'] },
    'tokenizer.ggml.bos_token_id': u32(config.vocabSize - 2),
    'tokenizer.ggml.eos_token_id': u32(config.vocabSize - 1),
  };
}

/** 256 byte tokens in GPT-2's printable spelling, which llama.cpp insists on, then `<|tN|>`. */
function placeholderVocabulary(size: number): string[] {
  const printable = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
  let next = 256;
  const bytes = Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(printable(byte) ? byte : next++),
  );
  return Array.from({ length: size }, (_, i) => bytes[i] ?? `<|t${i}|>`);
}

class Writer {
  readonly #chunks: Buffer[] = [];
  #length = 0;

  bytes(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }
  u32(n: number): void {
    const b = Buffer.alloc(4);
    b.writeUInt32LE(n);
    this.bytes(b);
  }
  u64(n: number): void {
    const b = Buffer.alloc(8);
    b.writeBigUInt64LE(BigInt(n));
    this.bytes(b);
  }
  string(text: string): void {
    const b = Buffer.from(text);
    this.u64(b.length);
    this.bytes(b);
  }
  value(field: Value): void {
    if (field.type === 'strings' || field.type === 'i32s') {
      this.u32(TYPE.array);
      this.u32(field.type === 'strings' ? TYPE.string : TYPE.i32);
      this.u64(field.value.length);
      for (const item of field.value) {
        if (typeof item === 'string') this.string(item);
        else this.u32(item);
      }
      return;
    }
    this.u32(TYPE[field.type]);
    if (field.type === 'string') this.string(field.value);
    else if (field.type === 'u32') this.u32(field.value);
    else {
      const b = Buffer.alloc(4);
      b.writeFloatLE(field.value);
      this.bytes(b);
    }
  }
  align(): void {
    this.bytes(Buffer.alloc((ALIGNMENT - (this.#length % ALIGNMENT)) % ALIGNMENT));
  }
  finish(): Buffer {
    return Buffer.concat(this.#chunks, this.#length);
  }
}
