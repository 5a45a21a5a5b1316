import { setImmediate } from 'node:timers/promises';
import { microBatches } from './micro-batches.js';
import { runMicroBatch } from './model/decoder.js';
import { sftHead } from './model/heads.js';
import { optimizerStep } from './optim/optimizer.js';
import type { TrainState, Workbench } from './state.js';
import type { OptimizerStep, PackedTrees, UpdateMetrics } from './types.js';
import { disposeAll, GradientSum, withFused } from './weights-store.js';

/**
 * One optimizer step on Σ weight·(−logp) / Σ weight. Weights stand in `advantages_T`; `owned_T`, temperatures and banned
 * ids play no part, because demonstrations train context tokens as well.
 */
export async function sftUpdate(
  bench: Workbench,
  state: TrainState,
  batch: PackedTrees,
  step: OptimizerStep,
): Promise<{ state: TrainState; metrics: UpdateMetrics }> {
  const started = performance.now();
  const { ops, config } = bench;
  const rows = Array.from({ length: batch.rowStart_B1.length - 1 }, (_, row) => row);
  const wanted = (token: number): boolean => {
    const weight = batch.advantages_T[token]!;
    return weight !== 0 && !Number.isNaN(weight);
  };
  const micros = microBatches(batch, rows, wanted, bench.microBatchTokens);
  let total = 0;
  let largest = 0;
  for (const micro of micros) {
    for (const token of micro.source_M) {
      total += batch.advantages_T[token]!;
      largest = Math.max(largest, batch.advantages_T[token]!);
    }
  }
  const sums = { loss: 0, full: 0, fullCount: 0, scored: 0 };
  const head = sftHead(
    ops,
    (token) => batch.advantages_T[token]! / total,
    (micro, logprobs_M) => {
      micro.source_M.forEach((token, m) => {
        const weight = batch.advantages_T[token]!;
        sums.loss -= (weight * logprobs_M[m]!) / total;
        sums.scored += 1;
        if (weight === largest) {
          sums.full -= logprobs_M[m]!;
          sums.fullCount += 1;
        }
      });
    },
  );
  const gradients = new GradientSum(ops, config);
  let next = state;
  let gradNorm = 0;
  try {
    await withFused(ops, config, state.params, async (fused) => {
      for (const micro of micros) {
        gradients.add(runMicroBatch(ops, config, fused, micro, head)!);
        await setImmediate();
      }
    });
    if (!gradients.empty) {
      const grads = gradients.finish(state.params);
      try {
        const result = optimizerStep(ops, bench.optimizer, state.params, state.optimizer, grads, step);
        gradNorm = result.gradNorm;
        next = { ...state, params: result.params, optimizer: result.state };
      } finally {
        disposeAll(grads.values());
      }
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
      'progress/tokens_scored': sums.scored,
      'perf/tokens_per_s': batch.tokens_T.length / seconds,
    },
  };
}
