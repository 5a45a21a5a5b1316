import { setImmediate } from 'node:timers/promises';
import { microBatches } from './micro-batches.js';
import { runMicroBatch } from './model/decoder.js';
import type { FusedWeights } from './model/fused.js';
import { scoreHead } from './model/heads.js';
import type { Workbench } from './state.js';
import type { PackedTrees, Scores } from './types.js';

/** Log-probability and entropy of every token that `wanted` names, NaN elsewhere. Forward passes only. */
export async function scoreTokens(
  { ops, config, microBatchTokens }: Workbench,
  fused: FusedWeights,
  batch: PackedTrees,
  wanted: (token: number) => boolean,
): Promise<Scores> {
  const T = batch.tokens_T.length;
  const logprobs_T = new Float32Array(T).fill(NaN);
  const entropies_T = new Float32Array(T).fill(NaN);
  const rows = Array.from({ length: batch.rowStart_B1.length - 1 }, (_, row) => row);
  const head = scoreHead(
    ops,
    { temperature: (token) => batch.temperature_T[token]!, bannedIds: batch.bannedIds },
    (micro, logprobs_M, entropies_M) => {
      micro.source_M.forEach((token, m) => {
        logprobs_T[token] = logprobs_M[m]!;
        entropies_T[token] = entropies_M[m]!;
      });
    },
  );
  for (const micro of microBatches(batch, rows, wanted, microBatchTokens)) {
    runMicroBatch(ops, config, fused, micro, head);
    await setImmediate();
  }
  return { logprobs_T, entropies_T };
}
