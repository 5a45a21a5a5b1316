import { readJson, TreewardError } from '@treeward/base';
import type { ModelConfig } from './config.js';
import type { RopeScaling } from './rope.js';

type Json = Record<string, unknown>;

const FAMILIES = { qwen3: 'Qwen3ForCausalLM', llama: 'LlamaForCausalLM' } as const;

/** Reads one field after the other, naming file and field in what it throws. */
class Fields {
  readonly #json: Json;
  readonly #path: string;

  constructor(json: Json, path: string) {
    this.#json = json;
    this.#path = path;
  }

  bad(why: string, hints: string[] = []): TreewardError {
    return new TreewardError('LEARNER_E_CONFIG', `${this.#path}: ${why}`, {
      data: { file: this.#path },
      hints,
    });
  }

  has(field: string): boolean {
    return this.#json[field] !== undefined && this.#json[field] !== null;
  }

  positive(field: string, fallback?: number): number {
    const value = this.has(field) ? this.#json[field] : fallback;
    if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) {
      throw this.bad(`${field} must be a positive number, got ${JSON.stringify(value)}`);
    }
    return value;
  }

  size(field: string, fallback?: number): number {
    const value = this.positive(field, fallback);
    if (!Number.isInteger(value)) throw this.bad(`${field} must be an integer, got ${value}`);
    return value;
  }
}

/**
 * @throws TreewardError LEARNER_E_CONFIG when it is no Qwen3 or Llama config, a size is missing, or it asks for something
 *   that would silently compute another function here (biases, sliding windows, other activations, other RoPE types)
 */
export function readModelConfig(path: string): ModelConfig {
  const hf = readJson<Json>(path);
  const fields = new Fields(hf, path);
  const family = hf['model_type'];
  if (family !== 'qwen3' && family !== 'llama') {
    throw fields.bad(`model_type is ${String(family ?? 'missing')}, supported: qwen3, llama`);
  }
  for (const field of ['attention_bias', 'mlp_bias']) {
    if (hf[field]) throw fields.bad(`${field} is on: linears with a bias are not supported`);
  }
  if (hf['use_sliding_window'])
    throw fields.bad('use_sliding_window is on: only full attention is supported');
  if (fields.has('hidden_act') && hf['hidden_act'] !== 'silu') {
    throw fields.bad(`hidden_act is ${String(hf['hidden_act'])}, supported: silu`);
  }
  const hiddenSize = fields.size('hidden_size');
  const heads = fields.size('num_attention_heads');
  const kvHeads = fields.size('num_key_value_heads', heads);
  if (heads % kvHeads !== 0) throw fields.bad(`${heads} query heads do not divide over ${kvHeads} key heads`);
  const maxPositions = fields.size('max_position_embeddings', 4096);
  const rope = (hf['rope_parameters'] ?? hf['rope_scaling'] ?? {}) as Json;
  const treeward = hf['treeward'] as { tie?: ModelConfig['tie']; output?: ModelConfig['output'] } | undefined;
  return {
    family,
    vocabSize: fields.size('vocab_size'),
    hiddenSize,
    layers: fields.size('num_hidden_layers'),
    heads,
    kvHeads,
    headDim: fields.size('head_dim', hiddenSize / heads),
    ffnSize: fields.size('intermediate_size'),
    ropeTheta: new Fields({ ...hf, ...rope }, path).positive('rope_theta', 10000),
    ropeScaling: readRopeScaling(rope, maxPositions, path),
    normEps: fields.positive('rms_norm_eps', 1e-6),
    maxPositions,
    tie: treeward?.tie ?? (hf['tie_word_embeddings'] ? 1 : 'untied'),
    output: treeward?.output ?? 'tokens',
  };
}

function readRopeScaling(rope: Json, maxPositions: number, path: string): RopeScaling {
  const fields = new Fields(rope, `${path} (rope scaling)`);
  const type = (rope['rope_type'] ?? rope['type'] ?? 'default') as RopeScaling['type'];
  const original = (): number => fields.positive('original_max_position_embeddings', maxPositions);
  switch (type) {
    case 'default':
      return { type };
    case 'linear':
      return { type, factor: fields.positive('factor') };
    case 'llama3':
      return {
        type,
        factor: fields.positive('factor'),
        lowFreqFactor: fields.positive('low_freq_factor'),
        highFreqFactor: fields.positive('high_freq_factor'),
        originalMaxPositions: original(),
      };
    case 'yarn': {
      const factor = fields.positive('factor');
      const scale = (m: number): number => (factor <= 1 ? 1 : 0.1 * m * Math.log(factor) + 1);
      const ratio =
        fields.has('mscale') && fields.has('mscale_all_dim')
          ? scale(fields.positive('mscale')) / scale(fields.positive('mscale_all_dim'))
          : scale(1);
      return {
        type,
        factor,
        betaFast: fields.positive('beta_fast', 32),
        betaSlow: fields.positive('beta_slow', 1),
        originalMaxPositions: original(),
        attentionFactor: fields.positive('attention_factor', ratio),
        truncate: rope['truncate'] !== false,
      };
    }
    default:
      throw fields.bad(`rope_type is ${String(type as unknown)}, supported: default, linear, llama3, yarn`);
  }
}

function toHfRope(scaling: RopeScaling): Json | null {
  switch (scaling.type) {
    case 'default':
      return null;
    case 'linear':
      return { rope_type: 'linear', factor: scaling.factor };
    case 'llama3':
      return {
        rope_type: 'llama3',
        factor: scaling.factor,
        low_freq_factor: scaling.lowFreqFactor,
        high_freq_factor: scaling.highFreqFactor,
        original_max_position_embeddings: scaling.originalMaxPositions,
      };
    case 'yarn':
      return {
        rope_type: 'yarn',
        factor: scaling.factor,
        beta_fast: scaling.betaFast,
        beta_slow: scaling.betaSlow,
        original_max_position_embeddings: scaling.originalMaxPositions,
        attention_factor: scaling.attentionFactor,
        truncate: scaling.truncate,
      };
  }
}

/** What transformers reads, plus our `treeward` block, which says how the matrices were tied in training. */
export function toHfConfig(config: ModelConfig): Json {
  const scaling = toHfRope(config.ropeScaling);
  return {
    architectures: [FAMILIES[config.family]],
    model_type: config.family,
    dtype: 'float32',
    tie_word_embeddings: config.tie === 1,
    hidden_size: config.hiddenSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    intermediate_size: config.ffnSize,
    hidden_act: 'silu',
    attention_bias: false,
    vocab_size: config.vocabSize,
    rope_theta: config.ropeTheta,
    ...(scaling && { rope_scaling: scaling }),
    rms_norm_eps: config.normEps,
    max_position_embeddings: config.maxPositions,
    treeward: { tie: config.tie, ...(config.output !== 'tokens' && { output: config.output }) },
  };
}
