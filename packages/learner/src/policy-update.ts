import { setImmediate } from 'node:timers/promises';
import { randomStream } from '@treeward/base';
import { policyLoss } from '@treeward/native';
import { microBatches } from './micro-batches.js';
import { runMicroBatch } from './model/decoder.js';
import { policyHead } from './model/heads.js';
import { optimizerStep } from './optim/optimizer.js';
import { PolicyMeter } from './policy-meter.js';
import { scoreTokens } from './score.js';
import { disposeState, type TrainState, type Workbench } from './state.js';
import { rowSpan, trainableTokens } from './trainable.js';
import type { OptimizerStep, PackedTrees, PolicyLoss, UpdateMetrics } from './types.js';
import { disposeAll, GradientSum, withFused } from './weights-store.js';

/**
 * All epochs and mini-batches of one batch. Returns the new state and leaves the old one untouched: whoever called
 * replaces it, or, on an error, keeps it.
 *
 * `logp_old` comes from the weights at the start. Rows whose advantages are all 0 are scored, for the report, and not
 * trained. Where no token has a gradient the optimizer does not step at all: moments of earlier steps move nothing.
 */
export async function policyUpdate(
  bench: Workbench,
  start: TrainState,
  batch: PackedTrees,
  loss: PolicyLoss,
  step: OptimizerStep,
): Promise<{ state: TrainState; metrics: UpdateMetrics }> {
  const started = performance.now();
  const { ops, config } = bench;
  const trainable = trainableTokens(batch);
  const wanted = (token: number): boolean => trainable.mask_T[token] === 1;
  const old = await withFused(ops, config, start.params, (fused) => scoreTokens(bench, fused, batch, wanted));
  const meter = new PolicyMeter(batch, trainable, old, loss);

  const rows = Array.from({ length: batch.rowStart_B1.length - 1 }, (_, row) => row);
  const tokensOf = (row: number): number[] => {
    const [from, to] = rowSpan(batch, row);
    return Array.from({ length: to - from }, (_, i) => from + i).filter(wanted);
  };
  const active = rows.filter((row) => tokensOf(row).some((token) => batch.advantages_T[token] !== 0));
  const distribution = {
    temperature: (token: number): number => batch.temperature_T[token]!,
    bannedIds: batch.bannedIds,
  };
  const take = (from: Float32Array, tokens: Int32Array): Float32Array =>
    Float32Array.from(tokens, (token) => from[token]!);

  let state = start;
  /** One mini-batch; false when the epochs should stop. */
  const miniBatch = async (members: readonly number[]): Promise<boolean> => {
    const tokens = members.reduce((sum, row) => sum + tokensOf(row).length, 0);
    // A constant belongs to the whole batch, of which a mini-batch is a share.
    const normaliser = loss.normaliser === 'batch-tokens' ? tokens : loss.normaliser / loss.minibatches;
    const measured = meter.miniBatch();
    const head = policyHead(ops, distribution, (micro, logp_M) => {
      const result = policyLoss(
        {
          logp_T: logp_M,
          logpOld_T: take(old.logprobs_T, micro.source_M),
          logpRollout_T: take(batch.rolloutLogprobs_T, micro.source_M),
          advantages_T: take(batch.advantages_T, micro.source_M),
          mask_T: new Float32Array(micro.source_M.length).fill(1),
        },
        { clipLow: loss.clipLow, clipHigh: loss.clipHigh, truncation: loss.truncation, normaliser },
      );
      measured.add(result);
      return result.gradLogp_T;
    });
    const gradients = new GradientSum(ops, config);
    try {
      await withFused(ops, config, state.params, async (fused) => {
        for (const micro of microBatches(batch, members, wanted, bench.microBatchTokens)) {
          gradients.add(runMicroBatch(ops, config, fused, micro, head)!);
          await setImmediate();
        }
      });
      if (loss.klStop > 0 && measured.approxKl > loss.klStop) return false;
      if (gradients.empty || !measured.hasGradient) return true;
      const grads = gradients.finish(state.params);
      try {
        const next = optimizerStep(ops, bench.optimizer, state.params, state.optimizer, grads, step);
        if (state !== start) disposeState(state);
        state = { ...start, params: next.params, optimizer: next.state };
        meter.step(next.gradNorm);
      } finally {
        disposeAll(grads.values());
      }
      return true;
    } finally {
      gradients.dispose();
    }
  };

  try {
    epochs: for (let epoch = 0; epoch < loss.epochs; epoch++) {
      const order = randomStream(loss.seed, 'minibatches', epoch).shuffle(active);
      const size = Math.max(1, Math.ceil(order.length / loss.minibatches));
      for (let i = 0; i < order.length; i += size) {
        if (!(await miniBatch(order.slice(i, i + size)))) {
          meter.stopped = true;
          break epochs;
        }
      }
    }
  } catch (error) {
    if (state !== start) disposeState(state);
    throw error;
  } finally {
    ops.trim();
  }
  const seconds = (performance.now() - started) / 1000;
  return {
    state,
    metrics: {
      ...meter.finish(),
      'optim/lr': step.lr,
      'progress/rows_zero_advantage': rows.length - active.length,
      'perf/tokens_per_s': batch.tokens_T.length / seconds,
    },
  };
}
