import type { FusedGrads, FusedWeights } from '../model/fused.js';
import { runPass } from '../model/decoder.js';
import { tokenOutput, type TokenGrads, type TokenValues } from '../model/token-output.js';
import { valueOutput } from '../model/value-output.js';
import type { ModelConfig } from '../model/config.js';
import type { HistoryPass } from '../pack/history-passes.js';
import type { MicroBatch } from '../pack/micro-batches.js';
import type { Workbench } from './state.js';

export interface MicroObjective {
  bannedIds: readonly number[];
  wantEntropy: boolean;
  /** Log-probabilities and entropies of the draws → their gradient; null when only values are wanted. */
  tokens?: (values: TokenValues, micro: MicroBatch) => TokenGrads | null;
  /** Values before the draws → their gradient; null when only values are wanted. */
  values?: (values_M: Float32Array, micro: MicroBatch) => Float32Array | null;
}

/** A micro-batch of a policy's or a context critic's forest through its model. */
export function runMicroBatch(
  bench: Workbench,
  config: ModelConfig,
  fused: FusedWeights,
  micro: MicroBatch,
  objective: MicroObjective,
): FusedGrads | null {
  const { ops } = bench;
  const N = micro.tokens_N.length;
  const input = {
    tokens_N: micro.tokens_N,
    depth_N: micro.depth_N,
    keys: N,
    visibility: { position_Q: Int32Array.from({ length: N }, (_, n) => n), end_K: micro.end_N },
    reads_U: micro.predictor_U,
  };
  return runPass(
    ops,
    config,
    fused,
    input,
    (unit, { head, value, valueBias }) => {
      const { tokens, values } = objective;
      const reads = {
        temperature_U: micro.temperature_U,
        read_M: micro.read_M,
        targets_M: micro.targets_M,
        bannedIds: objective.bannedIds,
      };
      const byToken =
        tokens && head
          ? tokenOutput(ops, unit, head, reads, (found) => tokens(found, micro), objective.wantEntropy)
          : null;
      const byValue =
        values && value && valueBias
          ? valueOutput(ops, unit, { value, valueBias }, (found_U) => {
              const gradient_M = values(
                Float32Array.from(micro.read_M, (read) => found_U[read]!),
                micro,
              );
              return gradient_M && sumByRead(gradient_M, micro);
            })
          : null;
      if (byToken && byValue) {
        return {
          dUnit: ops.add(byToken.dUnit, byValue.dUnit),
          head: byToken.dHead,
          value: byValue.dValue,
          valueBias: byValue.dBias,
        };
      }
      if (byToken) return { dUnit: byToken.dUnit, head: byToken.dHead };
      return byValue && { dUnit: byValue.dUnit, value: byValue.dValue, valueBias: byValue.dBias };
    },
    { checkpointing: N > bench.checkpointAbove },
  );
}

function sumByRead(gradient_M: Float32Array, { read_M, predictor_U }: MicroBatch): Float32Array {
  const sums_U = new Float32Array(predictor_U.length);
  gradient_M.forEach((g, m) => (sums_U[read_M[m]!]! += g));
  return sums_U;
}

/** Whole rollouts through a history critic. */
export function runHistoryPass(
  bench: Workbench,
  config: ModelConfig,
  fused: FusedWeights,
  pass: HistoryPass,
  objective: (values_M: Float32Array) => Float32Array | null,
): FusedGrads | null {
  return runPass(
    bench.ops,
    config,
    fused,
    pass,
    (unit, { value, valueBias }) => {
      const result = valueOutput(bench.ops, unit, { value: value!, valueBias: valueBias! }, objective);
      return result && { dUnit: result.dUnit, value: result.dValue, valueBias: result.dBias };
    },
    { checkpointing: pass.tokens_N.length > bench.checkpointAbove },
  );
}
