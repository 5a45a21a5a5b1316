import { writeFileAtomic } from '@treeward/base';
import type { ModelConfig } from '../model/config.js';
import { inverseFrequencies } from '../model/rope.js';
import { toFloat16 } from './float16.js';
import { ALIGNMENT, GgufWriter, type Value } from './gguf-writer.js';
import { EMBED, FINAL_NORM, HEAD, layerParam, toCheckpoint, type ParamArrays } from '../model/params.js';

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

/** Type of the matrices; vectors are float32 always. */
export type GgufType = 'f32' | 'f16';

/**
 * The policy as a GGUF file (version 3, architecture qwen3 or llama) for llama.cpp. The vocabulary in it is a placeholder:
 * the engine passes ids in and gets ids out, text is the tokenizer's business.
 */
export function writeGguf(
  path: string,
  config: ModelConfig,
  params: ParamArrays,
  type: GgufType = 'f32',
): void {
  const tensors = ggufTensors(config, params, type);
  const out = new GgufWriter();
  const fields = Object.entries(metadata(config, type));
  out.bytes(Buffer.from('GGUF'));
  out.u32(3);
  out.u64(tensors.length);
  out.u64(fields.length);
  for (const [key, value] of fields) {
    out.string(key);
    out.value(value);
  }
  let offset = 0;
  for (const { name, shape, data } of tensors) {
    out.string(name);
    out.u32(shape.length);
    // GGUF lists the contiguous dimension first.
    for (const n of [...shape].reverse()) out.u64(n);
    out.u32(data instanceof Uint16Array ? 1 : 0);
    out.u64(offset);
    offset += Math.ceil(data.byteLength / ALIGNMENT) * ALIGNMENT;
  }
  out.align();
  for (const { data } of tensors) {
    out.bytes(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    out.align();
  }
  writeFileAtomic(path, out.finish());
}

interface GgufTensor {
  name: string;
  shape: readonly number[];
  data: Float32Array | Uint16Array;
}

function ggufTensors(config: ModelConfig, params: ParamArrays, type: GgufType): GgufTensor[] {
  const arrays = toCheckpoint(config, params);
  const named: [string, string][] = [
    ['token_embd', EMBED],
    ['output_norm', FINAL_NORM],
    ['output', HEAD],
  ];
  for (let l = 0; l < config.layers; l++) {
    for (const [theirs, ours] of Object.entries(LAYER_NAMES)) {
      named.push([`blk.${l}.${theirs}`, layerParam(l, ours)]);
    }
  }
  const out: GgufTensor[] = [];
  for (const [name, source] of named) {
    // Absent: the norms of q and k in a Llama, the head of tied embeddings (llama.cpp then reads the embedding).
    const array = arrays.get(source);
    if (!array) continue;
    let data = array.data as Float32Array;
    if (config.family === 'llama' && /self_attn\.[qk]_proj/.test(source))
      data = interleaved(data, array.shape, config);
    out.push({
      name: `${name}.weight`,
      shape: array.shape,
      data: type === 'f16' && array.shape.length > 1 ? toFloat16(data) : data,
    });
  }
  if (config.ropeScaling.type === 'llama3') {
    const scaled = inverseFrequencies(config);
    const plain = inverseFrequencies({ ...config, ropeScaling: { type: 'default' } });
    const factors = Float32Array.from(plain, (w, i) => w / scaled[i]!);
    out.push({ name: 'rope_freqs.weight', shape: [factors.length], data: factors });
  }
  return out;
}

/** llama.cpp's llama rotates neighbours (2i, 2i + 1), transformers pairs (i, i + h/2): rows of each head change places. */
function interleaved(
  data: Float32Array,
  [rows, columns]: readonly number[],
  { headDim: h }: ModelConfig,
): Float32Array {
  const out = new Float32Array(data.length);
  for (let row = 0; row < rows!; row++) {
    const i = row % h;
    const to = row - i + (i < h / 2 ? 2 * i : 2 * (i - h / 2) + 1);
    out.set(data.subarray(row * columns!, (row + 1) * columns!), to * columns!);
  }
  return out;
}

function metadata(config: ModelConfig, type: GgufType): Record<string, Value> {
  const u32 = (value: number): Value => ({ type: 'u32', value });
  const f32 = (value: number): Value => ({ type: 'f32', value });
  const tokens = placeholderVocabulary(config.vocabSize);
  const shape: Record<string, Value> = {
    block_count: u32(config.layers),
    context_length: u32(config.maxPositions),
    embedding_length: u32(config.hiddenSize),
    feed_forward_length: u32(config.ffnSize),
    vocab_size: u32(config.vocabSize),
    'attention.head_count': u32(config.heads),
    'attention.head_count_kv': u32(config.kvHeads),
    'attention.key_length': u32(config.headDim),
    'attention.value_length': u32(config.headDim),
    'attention.layer_norm_rms_epsilon': f32(config.normEps),
    'rope.dimension_count': u32(config.headDim),
    'rope.freq_base': f32(config.ropeTheta),
  };
  const { ropeScaling } = config;
  if (ropeScaling.type === 'linear' || ropeScaling.type === 'yarn') {
    shape['rope.scaling.type'] = { type: 'string', value: ropeScaling.type };
    shape['rope.scaling.factor'] = f32(ropeScaling.factor);
  }
  if (ropeScaling.type === 'yarn') {
    shape['rope.scaling.original_context_length'] = u32(ropeScaling.originalMaxPositions);
  }
  return {
    'general.architecture': { type: 'string', value: config.family },
    'general.name': { type: 'string', value: 'treeward policy' },
    'general.alignment': u32(ALIGNMENT),
    'general.file_type': u32(type === 'f16' ? 1 : 0),
    ...Object.fromEntries(Object.entries(shape).map(([key, value]) => [`${config.family}.${key}`, value])),
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
