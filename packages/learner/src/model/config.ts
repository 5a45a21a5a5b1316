import { readJson, TreewardError } from '@treeward/base';

/** Shape of a Qwen3 decoder, in transformers' terms. */
export interface ModelConfig {
  vocabSize: number;
  hiddenSize: number;
  layers: number;
  heads: number;
  kvHeads: number;
  headDim: number;
  ffnSize: number;
  ropeTheta: number;
  normEps: number;
  maxPositions: number;
  /**
   * How input embedding and output head relate while training. `untied`: two matrices. A number s: one matrix E with
   * input rows s·E and head E (1 = transformers' tied embeddings, sqrt(hiddenSize) = the embedded model, which learns
   * faster so). Exports are always two matrices, so every reader sees a plain Qwen3.
   */
  tie: 'untied' | number;
}

/** The embedded policy's shape (design: embedded.md). */
export const embeddedConfig = (vocabSize = 768, hiddenSize = 128, layers = 4): ModelConfig => ({
  vocabSize,
  hiddenSize,
  layers,
  heads: hiddenSize / 32,
  kvHeads: hiddenSize / 64,
  headDim: 32,
  ffnSize: hiddenSize * 3,
  ropeTheta: 1000,
  normEps: 1e-6,
  maxPositions: 640,
  tie: Math.fround(Math.sqrt(hiddenSize)),
});

interface HfConfig {
  model_type?: string;
  tie_word_embeddings?: boolean;
  hidden_size: number;
  num_hidden_layers: number;
  num_attention_heads: number;
  num_key_value_heads?: number;
  head_dim?: number;
  intermediate_size: number;
  vocab_size: number;
  rope_theta?: number;
  rms_norm_eps?: number;
  max_position_embeddings?: number;
  treeward?: { tie: 'untied' | number };
}

/** @throws TreewardError LEARNER_E_CONFIG when it is not a Qwen3 config or a size is missing */
export function readModelConfig(path: string): ModelConfig {
  const hf = readJson<HfConfig>(path);
  const bad = (why: string): TreewardError =>
    new TreewardError('LEARNER_E_CONFIG', `${path}: ${why}`, { data: { file: path } });
  if (hf.model_type !== 'qwen3') throw bad(`model_type is ${hf.model_type ?? 'missing'}, supported: qwen3`);
  const size = (field: keyof HfConfig): number => {
    const value = hf[field];
    if (typeof value !== 'number' || !Number.isInteger(value) || value <= 0) {
      throw bad(`${field} must be a positive integer, got ${JSON.stringify(value)}`);
    }
    return value;
  };
  const heads = size('num_attention_heads');
  return {
    vocabSize: size('vocab_size'),
    hiddenSize: size('hidden_size'),
    layers: size('num_hidden_layers'),
    heads,
    kvHeads: hf.num_key_value_heads === undefined ? heads : size('num_key_value_heads'),
    headDim: hf.head_dim === undefined ? size('hidden_size') / heads : size('head_dim'),
    ffnSize: size('intermediate_size'),
    ropeTheta: hf.rope_theta ?? 10000,
    normEps: hf.rms_norm_eps ?? 1e-6,
    maxPositions: hf.max_position_embeddings ?? 4096,
    tie: hf.treeward?.tie ?? (hf.tie_word_embeddings ? 1 : 'untied'),
  };
}

/** What transformers reads, plus our `treeward` block, which says how the matrices were tied in training. */
export function toHfConfig(config: ModelConfig): Record<string, unknown> {
  return {
    architectures: ['Qwen3ForCausalLM'],
    model_type: 'qwen3',
    tie_word_embeddings: false,
    hidden_size: config.hiddenSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    intermediate_size: config.ffnSize,
    vocab_size: config.vocabSize,
    rope_theta: config.ropeTheta,
    rms_norm_eps: config.normEps,
    max_position_embeddings: config.maxPositions,
    treeward: { tie: config.tie },
  };
}
