import type { RopeScaling } from './rope.js';

/** Shape of a decoder, in transformers' terms. */
export interface ModelConfig {
  /** Qwen3 normalises q and k per head, Llama does not; all else is the same. */
  family: 'qwen3' | 'llama';
  vocabSize: number;
  hiddenSize: number;
  layers: number;
  heads: number;
  kvHeads: number;
  headDim: number;
  ffnSize: number;
  ropeTheta: number;
  ropeScaling: RopeScaling;
  normEps: number;
  maxPositions: number;
  /**
   * How input embedding and output head relate while training. `untied`: two matrices. A number s: one matrix E with
   * input rows s·E and head E (1 = transformers' tied embeddings, sqrt(hiddenSize) = the embedded model, which learns
   * faster so). Exports of the latter are two matrices, so every reader sees a plain checkpoint.
   */
  tie: 'untied' | number;
  /** What the last states are read as: next-token logits, a value, or both from one trunk. */
  output: 'tokens' | 'value' | 'tokens+value';
}

/** The embedded policy's shape (design: embedded.md). */
export const embeddedConfig = (vocabSize = 768, hiddenSize = 128, layers = 4): ModelConfig => ({
  family: 'qwen3',
  vocabSize,
  hiddenSize,
  layers,
  heads: hiddenSize / 32,
  kvHeads: hiddenSize / 64,
  headDim: 32,
  ffnSize: hiddenSize * 3,
  ropeTheta: 1000,
  ropeScaling: { type: 'default' },
  normEps: 1e-6,
  maxPositions: 640,
  tie: Math.fround(Math.sqrt(hiddenSize)),
  output: 'tokens',
});

export const readsTokens = (config: ModelConfig): boolean => config.output !== 'value';
export const readsValue = (config: ModelConfig): boolean => config.output !== 'tokens';
