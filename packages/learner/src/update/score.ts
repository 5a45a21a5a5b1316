import { setImmediate } from 'node:timers/promises';
import type { Params } from '../model/fused.js';
import type { Forest } from '../pack/forest.js';
import { microBatches } from '../pack/micro-batches.js';
import type { PackedTrees, Scores } from '../types.js';
import { withFused } from '../weights-store.js';
import { runMicroBatch } from './run-micro-batch.js';
import type { Workbench } from './state.js';

/** Log-probability and entropy of every packed token in `wanted`, NaN elsewhere. Forward passes only. */
export async function scoreTokens(
  bench: Workbench,
  params: Params,
  batch: PackedTrees,
  forest: Forest,
  wanted: readonly number[],
): Promise<Scores> {
  const T = batch.tokens_T.length;
  const logprobs_T = new Float32Array(T).fill(NaN);
  const entropies_T = new Float32Array(T).fill(NaN);
  const { policy, microBatchTokens: budget } = bench;
  await withFused(bench.ops, policy, params, async (fused) => {
    for (const micro of microBatches(batch, forest, wanted, { budget })) {
      runMicroBatch(bench, policy.config, fused, micro, {
        bannedIds: batch.bannedIds,
        wantEntropy: true,
        tokens: (values) => {
          micro.source_M.forEach((token, m) => {
            logprobs_T[token] = values.logprobs_M[m]!;
            entropies_T[token] = values.entropies_M[m]!;
          });
          return null;
        },
      });
      await setImmediate();
    }
  });
  return { logprobs_T, entropies_T };
}
