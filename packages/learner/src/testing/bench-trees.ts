import { readJson } from '@treeward/base';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { PackedTrees } from '../index.js';
import { packRows } from './batches.js';
import { randomTree, separatePaths } from './random-tree.js';

interface RealTrees {
  rollouts: { nodes: { parent: number; sampled: number; tokens: number[] }[] }[];
}

/** Rollouts of the embedded policy in real CLIs, and a larger random batch; sampled tokens are trained. */
export function benchTrees(): Record<'synthetic' | 'real', PackedTrees> {
  const home = dirname(createRequire(import.meta.url).resolve('@treeward/learner/package.json'));
  const { rollouts } = readJson<RealTrees>(join(home, 'src/__fixtures__/real-trees.json'));
  const rows = rollouts.flatMap(({ nodes }, rollout) => nodes.map((node) => ({ ...node, rollout })));
  let first = 0;
  const parents = rollouts.flatMap(({ nodes }) => {
    const from = first;
    first += nodes.length;
    return nodes.map(({ parent }) => (parent < 0 ? -1 : from + parent));
  });
  const weights = rows.map(({ tokens, sampled }) => tokens.map(() => sampled));
  const synthetic = randomTree('bench', { rollouts: 4, vocabulary: 4096, nodes: 24, size: 60, prompt: 700 });
  return {
    synthetic: { ...synthetic, advantages_T: Float32Array.from(synthetic.owned_T) },
    real: {
      ...packRows(
        rows.map(({ tokens }) => tokens),
        weights,
      ),
      parent_B: Int32Array.from(parents),
      owned_T: Uint8Array.from(weights.flat()),
      rollout_B: Int32Array.from(rows, ({ rollout }) => rollout),
    },
  };
}

/** Every path as a row that shares nothing with another: first tokens are made to differ, which changes no cost. */
export function pathsOnTheirOwn(batch: PackedTrees): PackedTrees {
  const { rows, source_T } = separatePaths(batch);
  const tokens = rows.map(({ tokens: own }, row) => [row, ...own.slice(1)]);
  return packRows(
    tokens,
    rows.map(({ tokens: own, from }) =>
      own.map((_, i) => {
        const source = source_T[from + i]!;
        return source < 0 ? 0 : batch.advantages_T[source]!;
      }),
    ),
  );
}
