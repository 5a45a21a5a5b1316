import { algorithmDefaults, type PolicyAlgorithm } from './algorithm.js';

/** A method by name: which calls train, and everything that turns their rewards into an update. */
export interface MethodPreset {
  /** The preset of @treeward/tree-recovery that says which calls train. */
  calls: 'treeward' | 'clawgym2';
  algorithm: PolicyAlgorithm;
}

/**
 * - `treeward`: every call but side calls, each sampled token once, leave-one-out baseline, constant normaliser; two epochs
 *   of four mini-batches that stop early, truncated importance weights against engine mismatch.
 * - `clawgym2`: the longest path of each epoch of the main agent; group mean and population std, each rollout's mean over its
 *   tokens (the paper's eq. 6), no KL.
 */
export const methodPresets: Readonly<Record<'treeward' | 'clawgym2', MethodPreset>> = {
  treeward: { calls: 'treeward', algorithm: algorithmDefaults.rloo },
  clawgym2: { calls: 'clawgym2', algorithm: { ...algorithmDefaults.grpo, klCoef: 0 } },
};
