import { randomStream } from '@treeward/base';
import { embeddedConfig, type ModelConfig, type PackedTrees } from '@treeward/learner';
import { packRows } from './batches.js';

/** A bench's model and the rows of its step. */
export interface BenchCase {
  config: ModelConfig;
  rows: number;
  length: number;
}

const shape = (hidden: number, layers: number): ModelConfig => ({
  ...embeddedConfig(4096, hidden, layers),
  heads: 4,
  kvHeads: 4,
  headDim: hidden / 4,
  ffnSize: 4 * hidden,
  maxPositions: 1 << 16,
  tie: 1,
});

/** 1.6 M: 4 × 256 tokens; 7 M: 16 × 512 tokens. */
export const benchCases: Readonly<Record<'1.6M' | '7M', BenchCase>> = {
  '1.6M': { config: shape(128, 4), rows: 4, length: 256 },
  '7M': { config: shape(256, 6), rows: 16, length: 512 },
};

/** Rows of random tokens with nothing in common: a row holds one token more than it predicts. */
export function benchRows({ config, rows, length }: BenchCase): PackedTrees {
  const random = randomStream('learner-bench');
  const drawn = Array.from({ length: rows }, (_, row) =>
    Array.from({ length: length + 1 }, (__, i) => (i ? random.below(config.vocabSize) : row)),
  );
  return packRows(
    drawn,
    drawn.map((row) => row.map((_, i) => (i ? 1 : 0))),
  );
}
