import { randomStream, TreewardError, type NamedTensor } from '@treeward/base';
import { readsTokens, readsValue, type ModelConfig } from './config.js';

/** Trained arrays by transformers' names, on the JavaScript side. */
export type ParamArrays = Map<string, NamedTensor>;

export const EMBED = 'model.embed_tokens.weight';
export const HEAD = 'lm_head.weight';
export const FINAL_NORM = 'model.norm.weight';
export const VALUE_WEIGHT = 'value_head.weight';
export const VALUE_BIAS = 'value_head.bias';
export const layerParam = (layer: number, name: string): string => `model.layers.${layer}.${name}.weight`;

/** Names and shapes of what is trained, in a fixed order. A tied model has no input embedding of its own. */
export function paramShapes(config: ModelConfig): Map<string, number[]> {
  const { hiddenSize: d, headDim, ffnSize: f, vocabSize: v } = config;
  const shapes = new Map<string, number[]>();
  if (config.tie === 'untied') shapes.set(EMBED, [v, d]);
  for (let l = 0; l < config.layers; l++) {
    shapes.set(layerParam(l, 'input_layernorm'), [d]);
    shapes.set(layerParam(l, 'self_attn.q_proj'), [config.heads * headDim, d]);
    shapes.set(layerParam(l, 'self_attn.k_proj'), [config.kvHeads * headDim, d]);
    shapes.set(layerParam(l, 'self_attn.v_proj'), [config.kvHeads * headDim, d]);
    shapes.set(layerParam(l, 'self_attn.o_proj'), [d, config.heads * headDim]);
    if (config.family === 'qwen3') {
      shapes.set(layerParam(l, 'self_attn.q_norm'), [headDim]);
      shapes.set(layerParam(l, 'self_attn.k_norm'), [headDim]);
    }
    shapes.set(layerParam(l, 'post_attention_layernorm'), [d]);
    shapes.set(layerParam(l, 'mlp.gate_proj'), [f, d]);
    shapes.set(layerParam(l, 'mlp.up_proj'), [f, d]);
    shapes.set(layerParam(l, 'mlp.down_proj'), [d, f]);
  }
  shapes.set(FINAL_NORM, [d]);
  if (readsTokens(config) || config.tie !== 'untied') shapes.set(HEAD, [v, d]);
  if (readsValue(config)) {
    shapes.set(VALUE_WEIGHT, [1, d]);
    shapes.set(VALUE_BIAS, [1]);
  }
  return shapes;
}

/** Matrices inside the layers: what Muon updates. */
export const isHidden = (name: string): boolean =>
  name.startsWith('model.layers.') && name.includes('_proj.weight');

/** Random weights for training from scratch: 1/sqrt(fan-in), output projections scaled down by sqrt(2·layers). */
export function initParams(config: ModelConfig, seed: string | number): ParamArrays {
  const params: ParamArrays = new Map();
  for (const [name, shape] of paramShapes(config)) {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    // A value head starts at 0: it predicts nothing before it has learned.
    if (name === VALUE_WEIGHT || name === VALUE_BIAS) data.fill(0);
    else if (shape.length === 1) data.fill(1);
    else {
      const random = randomStream(seed, 'init', name);
      const output = name.includes('o_proj') || name.includes('down_proj');
      const std = isHidden(name)
        ? 1 / Math.sqrt(shape[1]! * (output ? 2 * config.layers : 1))
        : name === EMBED
          ? 0.02 * Math.sqrt(config.hiddenSize)
          : 0.02;
      for (let i = 0; i < data.length; i++) data[i] = random.normal() * std;
    }
    params.set(name, { shape, data });
  }
  return params;
}

/**
 * The arrays of a checkpoint as trained ones: checks names and shapes, and drops the input embedding of a tied model
 * after making sure it is what the tie says.
 *
 * @throws TreewardError LEARNER_E_WEIGHTS naming the tensor
 */
export function fromCheckpoint(
  config: ModelConfig,
  tensors: ReadonlyMap<string, NamedTensor>,
  file: string,
): ParamArrays {
  const bad = (why: string): TreewardError =>
    new TreewardError('LEARNER_E_WEIGHTS', `${file}: ${why}`, { data: { file } });
  const params: ParamArrays = new Map();
  const bias = [...tensors.keys()].find((name) => name.endsWith('.bias') && name !== VALUE_BIAS);
  if (bias !== undefined) throw bad(`tensor ${bias}: linears with a bias are not supported`);
  for (const [name, shape] of paramShapes(config)) {
    const tensor = tensors.get(name) ?? (config.tie === 1 && name === HEAD ? tensors.get(EMBED) : undefined);
    if (!tensor) throw bad(`tensor ${name} is missing`);
    if (tensor.shape.join() !== shape.join()) {
      throw bad(`tensor ${name} has shape [${tensor.shape.join()}], the config needs [${shape.join()}]`);
    }
    if (!(tensor.data instanceof Float32Array)) throw bad(`tensor ${name} is not float32`);
    params.set(name, { shape, data: tensor.data });
  }
  if (config.tie !== 'untied') {
    const embed = tensors.get(EMBED)?.data;
    const head = params.get(HEAD)!.data;
    if (embed && tieScale(embed as Float32Array, head as Float32Array, config.tie) === null) {
      throw bad(`${EMBED} is not ${HEAD} × ${config.tie}, as the config's treeward.tie says`);
    }
  }
  return params;
}

/** Trained arrays as transformers reads them: tied at scale 1 one matrix (as it ties them), otherwise two. */
export function toCheckpoint(config: ModelConfig, params: ParamArrays): ParamArrays {
  if (config.tie === 'untied') return params;
  const head = params.get(HEAD)!;
  if (config.tie === 1) {
    return new Map([[EMBED, head], ...[...params].filter(([name]) => name !== HEAD)]);
  }
  const scale = config.tie;
  return new Map([
    [EMBED, { shape: head.shape, data: (head.data as Float32Array).map((x) => x * scale) }],
    ...params,
  ]);
}

/** `expected` if embed = head × expected everywhere (to rounding), else null. */
function tieScale(embed: Float32Array, head: Float32Array, expected: number): number | null {
  if (embed.length !== head.length) return null;
  for (let i = 0; i < head.length; i++) {
    if (Math.abs(embed[i]! - head[i]! * expected) > 1e-5 * Math.abs(embed[i]!) + 1e-8) return null;
  }
  return expected;
}

/**
 * Checkpoints folded elsewhere do not say that they were tied. Finds out: sqrt(hiddenSize), or untied.
 */
export function detectTie(
  config: ModelConfig,
  tensors: ReadonlyMap<string, NamedTensor>,
): ModelConfig['tie'] {
  const embed = tensors.get(EMBED)?.data;
  const head = tensors.get(HEAD)?.data;
  const scale = Math.fround(Math.sqrt(config.hiddenSize));
  if (!(embed instanceof Float32Array) || !(head instanceof Float32Array)) return config.tie;
  return tieScale(embed, head, scale) === null ? 'untied' : scale;
}
