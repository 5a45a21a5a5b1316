import type { ModelConfig } from '../model/config.js';
import type { ParamArrays } from '../model/params.js';
import { buildForest } from '../pack/forest.js';
import { microBatches, type CutOptions } from '../pack/micro-batches.js';
import type { Ops } from '../tf/ops.js';
import type { PackedTrees } from '../types.js';
import { runMicroBatch, type MicroObjective } from '../update/run-micro-batch.js';
import type { Workbench } from '../update/state.js';
import { resolveOptimizer } from '../optim/options.js';
import { GradientSum, toArrays, toTensors, withFused } from '../weights-store.js';

export const workbench = (ops: Ops, config: ModelConfig, more: Partial<Workbench> = {}): Workbench => ({
  ops,
  policy: { config, optimizer: resolveOptimizer(), lora: null },
  critic: null,
  reference: null,
  microBatchTokens: 2048,
  checkpointAbove: Infinity,
  ...more,
});

/** Gradients of every array under an objective over the wanted tokens of a batch, and the tokens computed for it. */
export async function gradientsOf(
  bench: Workbench,
  arrays: ParamArrays,
  batch: PackedTrees,
  objective: MicroObjective,
  wanted: readonly number[],
  cut: CutOptions = { budget: bench.microBatchTokens },
): Promise<{ grads: ParamArrays; computed: number }> {
  const { ops, policy } = bench;
  const tensors = toTensors(ops, arrays);
  const sum = new GradientSum(ops, policy);
  let computed = 0;
  await withFused(ops, policy, tensors, async (fused) => {
    for (const micro of microBatches(batch, buildForest(batch), wanted, cut)) {
      computed += micro.tokens_N.length;
      sum.add(runMicroBatch(bench, policy.config, fused, micro, objective)!);
      await Promise.resolve();
    }
  });
  const grads = sum.finish(tensors);
  const out = { grads: toArrays(grads), computed };
  for (const tensor of [...tensors.values(), ...grads.values()]) tensor.dispose();
  ops.trim();
  return out;
}

/** L = −Σ weight·logp (+ Σ entropyWeight·entropy) over the wanted tokens of a batch, and its gradients. */
export async function lossAndGradients(
  bench: Workbench,
  arrays: ParamArrays,
  batch: PackedTrees,
  objective: { weight: (token: number) => number; entropyWeight?: number },
  wanted: readonly number[],
  cut?: CutOptions,
): Promise<{ loss: number; grads: ParamArrays; logprobs: Map<number, number>; computed: number }> {
  const logprobs = new Map<number, number>();
  let loss = 0;
  const micro: MicroObjective = {
    bannedIds: batch.bannedIds,
    wantEntropy: objective.entropyWeight !== undefined,
    tokens: ({ logprobs_M, entropies_M }, { source_M }) => {
      source_M.forEach((token, m) => {
        logprobs.set(token, logprobs_M[m]!);
        loss -= objective.weight(token) * logprobs_M[m]!;
        loss += (objective.entropyWeight ?? 0) * entropies_M[m]!;
      });
      return {
        gradLogp_M: Float32Array.from(source_M, (token) => -objective.weight(token)),
        ...(objective.entropyWeight !== undefined && {
          gradEntropy_M: new Float32Array(source_M.length).fill(objective.entropyWeight),
        }),
      };
    },
  };
  const { grads, computed } = await gradientsOf(bench, arrays, batch, micro, wanted, cut);
  return { loss, grads, logprobs, computed };
}

/** Largest difference of two arrays over the largest value of the second. */
export function relativeDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [difference, scale] = [0, 0];
  for (let i = 0; i < b.length; i++) {
    difference = Math.max(difference, Math.abs(a[i]! - b[i]!));
    scale = Math.max(scale, Math.abs(b[i]!));
  }
  return scale === 0 ? difference : difference / scale;
}
