import type { ModelConfig } from './model/config.js';
import { loraTargets, type LoraOptions } from './model/lora.js';
import { paramShapes } from './model/params.js';
import { resolveOptimizer, type OptimizerOptions } from './optim/options.js';

/** What decides how much memory a learner takes. */
export interface MemoryInput {
  config: ModelConfig;
  optimizer?: OptimizerOptions;
  lora?: LoraOptions;
  /** A value model of its own, of the policy's shape. */
  critic?: boolean;
  /** Reference weights are kept. */
  reference?: boolean;
  /** Distinct tokens of the largest pass: the token budget, or the longest path where that is longer. */
  passTokens: number;
  checkpointAbove?: number;
}

/** Bytes. */
export interface MemoryEstimate {
  weights: number;
  /** Moments of the optimizer. */
  optimizer: number;
  /** Fused weights, gradients, and the new weights and moments that stand beside the old ones during a step. */
  step: number;
  activations: number;
  logits: number;
  total: number;
}

/** Logits held at a time, and the arrays of their size (probabilities, gradient, one temporary). */
const LOGIT_VALUES = 1 << 22;
const FLOAT = 4;

/**
 * What an update will need beside the process itself (about 0.3 GiB with TensorFlow). An update can be dropped as a whole, so
 * three sets of weights and moments meet during it: those at its start, the current ones and the next ones.
 */
export function estimateMemory(input: MemoryInput): MemoryEstimate {
  const { config, lora, passTokens } = input;
  const count = [...paramShapes(config).values()].reduce(
    (sum, shape) => sum + shape.reduce((a, b) => a * b, 1),
    0,
  );
  const shapes = paramShapes(config);
  const adapters = lora
    ? loraTargets(config, lora).reduce((sum, name) => {
        const [rows, columns] = shapes.get(name) as [number, number];
        return sum + lora.rank * (rows + columns);
      }, 0)
    : 0;
  const trained = lora ? adapters : count;
  const muon = resolveOptimizer(input.optimizer).kind === 'muon';
  const moments = trained * (muon ? 1 : 2);
  const models = input.critic ? 2 : 1;
  const weights = (count + adapters) * models + (input.reference ? count : 0);
  // Fused weights and fused gradient are weight-sized, so is the gradient by parameter; then twice the trained state.
  const step = 3 * count + 2 * (trained + moments) * models;
  const { activations, logits } = passMemory(config, passTokens, input.checkpointAbove ?? 8192);
  const parts = {
    weights: weights * FLOAT,
    optimizer: moments * models * FLOAT,
    step: step * FLOAT,
    activations: activations * FLOAT,
    logits: logits * FLOAT,
  };
  return { ...parts, total: Object.values(parts).reduce((a, b) => a + b) };
}

/**
 * Values per token, by what layer.ts keeps: states and projections of attention and feed-forward. The vocabulary's projection
 * and a layer's backward pass come one after the other: the larger one counts.
 */
function passMemory(
  config: ModelConfig,
  tokens: number,
  checkpointAbove: number,
): { activations: number; logits: number } {
  const { hiddenSize: d, heads: H, kvHeads: K, headDim: h, ffnSize: f, layers } = config;
  const turned = (H + K) * h;
  const layer = 2 * d + (config.family === 'qwen3' ? 2 : 1) * turned + K * h + H * h + 3 * f;
  const backward = 3 * f + 4 * d + turned;
  const kept = tokens > checkpointAbove ? layers * d : layers * layer;
  const working = tokens * (tokens > checkpointAbove ? layer + backward : backward);
  const logits = Math.min(LOGIT_VALUES, tokens * config.vocabSize) * 3;
  return { activations: tokens * kept + Math.max(0, working - logits), logits };
}
