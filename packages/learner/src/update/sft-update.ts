import { setImmediate } from 'node:timers/promises';
import { buildForest } from '../pack/forest.js';
import { microBatches, type MicroBatch } from '../pack/micro-batches.js';
import { forEachRow, hasPrediction } from '../trainable.js';
import type { OptimizerStep, PackedTrees, UpdateMetrics } from '../types.js';
import { GradientSum, withFused } from '../weights-store.js';
import { stepModel } from './step-model.js';
import { runMicroBatch } from './run-micro-batch.js';
import type { TrainState, Workbench } from './state.js';

/**
 * One optimizer step on Σ weight·(−logp) / Σ weight. Weights stand in `advantages_T`; `owned_T`, temperatures and banned
 * ids play no part, because demonstrations train context tokens as well.
 */
export async function sftUpdate(
  bench: Workbench,
  state: TrainState,
  packed: PackedTrees,
  step: OptimizerStep,
): Promise<{ state: TrainState; metrics: UpdateMetrics }> {
  const started = performance.now();
  const { ops, policy } = bench;
  const batch = { ...packed, temperature_T: new Float32Array(packed.tokens_T.length).fill(1) };
  const weight = (token: number): number => batch.advantages_T[token]!;
  const wanted: number[] = [];
  let total = 0;
  let largest = 0;
  forEachRow(batch, (row, from, to) => {
    for (let t = from; t < to; t++) {
      if (weight(t) === 0 || Number.isNaN(weight(t)) || !hasPrediction(batch, row, t)) continue;
      wanted.push(t);
      total += weight(t);
      largest = Math.max(largest, weight(t));
    }
  });
  const forest = buildForest(batch);
  const sums = { loss: 0, full: 0, fullCount: 0 };
  const tokens = (values: { logprobs_M: Float32Array }, micro: MicroBatch): { gradLogp_M: Float32Array } => {
    micro.source_M.forEach((token, m) => {
      const logprob = values.logprobs_M[m]!;
      sums.loss -= (weight(token) * logprob) / total;
      if (weight(token) !== largest) return;
      sums.full -= logprob;
      sums.fullCount += 1;
    });
    return { gradLogp_M: Float32Array.from(micro.source_M, (token) => -weight(token) / total) };
  };
  const gradients = new GradientSum(ops, policy);
  let next = state;
  let gradNorm = 0;
  let computed = 0;
  try {
    await withFused(ops, policy, state.policy.params, async (fused) => {
      for (const micro of microBatches(batch, forest, wanted, { budget: bench.microBatchTokens })) {
        computed += micro.tokens_N.length;
        gradients.add(
          runMicroBatch(bench, policy.config, fused, micro, { bannedIds: [], wantEntropy: false, tokens })!,
        );
        await setImmediate();
      }
    });
    if (!gradients.empty) {
      const result = stepModel(ops, policy, state.policy, gradients, step);
      gradNorm = result.gradNorm;
      next = { ...state, policy: result.model };
    }
  } finally {
    gradients.dispose();
    ops.trim();
  }
  const seconds = (performance.now() - started) / 1000;
  return {
    state: next,
    metrics: {
      'loss/sft': sums.loss,
      'loss/sft_full_weight': sums.full / Math.max(1, sums.fullCount),
      'optim/grad_norm': gradNorm,
      'optim/lr': step.lr,
      'optim/updates': next === state ? 0 : 1,
      'progress/tokens': batch.tokens_T.length,
      'progress/tokens_scored': wanted.length,
      'perf/tokens_computed': computed,
      'perf/tokens_per_s': batch.tokens_T.length / seconds,
    },
  };
}
