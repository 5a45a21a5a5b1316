// Shapes of rollouts of real harnesses (recorded with their CLIs, trees recovered by tree-recovery): numbers only.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** N tree nodes, C calls, L causal edges (lineage). */
export interface RecordedRollout {
  /** Harness and what happens in it. */
  name: string;
  /** Parent before child; -1 at a root. */
  parent_N: number[];
  tokens_N: number[];
  /** 1 where the node's tokens were sampled. */
  sampled_N: number[];
  /** Sampled tokens of each call. */
  tokens_C: number[];
  successorOffset_C1: number[];
  /** Positions among the rollout's calls. */
  successor_L: number[];
  weight_L: number[];
}

export function recordedRollouts(): RecordedRollout[] {
  const native = dirname(createRequire(import.meta.url).resolve('@treeward/native/package.json'));
  const file = join(native, 'src/testing/shapes/recorded-rollouts.json');
  return JSON.parse(readFileSync(file, 'utf8')) as RecordedRollout[];
}
