import { causalGae } from '@treeward/native';
import { TreewardError } from '@treeward/base';
import { setImmediate } from 'node:timers/promises';
import type { FusedGrads, FusedWeights } from '../model/fused.js';
import { historyPasses, type HistoryPass } from '../pack/history-passes.js';
import { NEVER } from '../pack/pack-calls.js';
import type { Forest } from '../pack/forest.js';
import { microBatches } from '../pack/micro-batches.js';
import type { CriticLoss, PackedCalls, PackedTrees } from '../types.js';
import { withFused } from '../weights-store.js';
import { runHistoryPass, runMicroBatch } from './run-micro-batch.js';
import type { Model, TrainState, Workbench } from './state.js';

/** A part of the batch that goes through the critic at once: the packed tokens whose values it gives. */
interface CriticPiece {
  source_M: Int32Array;
  /** `gradient` sees the values before the tokens and answers with their gradient; null: values only. */
  run: (fused: FusedWeights, gradient: (values_M: Float32Array) => Float32Array | null) => FusedGrads | null;
}

/** The calls of a batch that a critic needs. @throws TreewardError LEARNER_E_CRITIC without them */
export function callsOf(batch: PackedTrees): PackedCalls {
  if (batch.calls) return batch.calls;
  throw new TreewardError('LEARNER_E_CRITIC', 'the batch says nothing about its calls', {
    hints: ['pack rollouts with `packTrees`'],
  });
}

/** The model whose trunk the values come from, and its weights. */
export function criticOf(bench: Workbench, state: TrainState): { model: Model; own: boolean } {
  if (bench.critic && state.critic) return { model: bench.critic, own: true };
  if (bench.policy.config.output === 'tokens+value') return { model: bench.policy, own: false };
  throw new TreewardError('LEARNER_E_CRITIC', 'this learner was opened without a critic', {
    hints: ['give `critic` when opening it: a value model of its own, or a head on the policy'],
  });
}

/** Sampled tokens of calls that have a part in credit (side calls have none). */
export function valuedTokens(batch: PackedTrees): number[] {
  const { action_C, finish_C } = callsOf(batch);
  const out: number[] = [];
  action_C.forEach((row, c) => {
    if (row < 0 || finish_C[c] === NEVER) return;
    for (let t = batch.rowStart_B1[row]!; t < batch.rowStart_B1[row + 1]!; t++) out.push(t);
  });
  return out;
}

/** Cuts tokens whose values are wanted into pieces that fit the budget. */
export function criticPieces(
  bench: Workbench,
  model: Model,
  batch: PackedTrees,
  forest: Forest,
  critic: CriticLoss,
  wanted: readonly number[],
): CriticPiece[] {
  const budget = bench.microBatchTokens;
  if (critic.sees === 'history') {
    return historyPasses(batch, callsOf(batch), wanted, budget).map((pass: HistoryPass) => ({
      source_M: pass.source_M,
      run: (fused, gradient) => runHistoryPass(bench, model.config, fused, pass, gradient),
    }));
  }
  // Nothing precedes it, so there is nothing to read a value from.
  const readable = wanted.filter((token) => forest.parent_F[forest.position_T[token]!]! >= 0);
  const plain = { ...batch, temperature_T: new Float32Array(batch.tokens_T.length).fill(1) };
  return microBatches(plain, forest, readable, { budget }).map((micro) => ({
    source_M: micro.source_M,
    run: (fused, gradient) =>
      runMicroBatch(bench, model.config, fused, micro, {
        bannedIds: [],
        wantEntropy: false,
        values: gradient,
      }),
  }));
}

/** Value before each wanted token, 0 elsewhere. */
export async function criticValues(
  bench: Workbench,
  state: TrainState,
  batch: PackedTrees,
  forest: Forest,
  critic: CriticLoss,
  wanted: readonly number[],
): Promise<Float32Array> {
  const { model, own } = criticOf(bench, state);
  if (!own && critic.sees === 'history') {
    throw new TreewardError(
      'LEARNER_E_CRITIC',
      'a head on the policy sees what the policy sees: its context',
      {
        hints: ["open the learner with `critic: { kind: 'model' }`", "or take a critic that sees 'context'"],
      },
    );
  }
  const values_T = new Float32Array(batch.tokens_T.length);
  const pieces = criticPieces(bench, model, batch, forest, critic, wanted);
  await withFused(bench.ops, model, (own ? state.critic! : state.policy).params, async (fused) => {
    for (const piece of pieces) {
      piece.run(fused, (values_M) => {
        piece.source_M.forEach((token, m) => (values_T[token] = values_M[m]!));
        return null;
      });
      await setImmediate();
    }
  });
  return values_T;
}

/** Advantages and value targets of every valued token, by the causal order that the loss names; NaN elsewhere. */
export function causalCredit(
  batch: PackedTrees,
  values_T: Float32Array,
  critic: CriticLoss,
): { advantages_T: Float32Array; targets_T: Float32Array } {
  const calls = callsOf(batch);
  const { successorOffset_C1, successor_L, weight_L } = calls[critic.order];
  const C = calls.action_C.length;
  const tokenOffset_C1 = new Int32Array(C + 1);
  const places: number[] = [];
  const reward_C = new Float32Array(C);
  for (let r = 0; r + 1 < calls.callOffset_R1.length; r++) {
    for (let c = calls.callOffset_R1[r]!; c < calls.callOffset_R1[r + 1]!; c++) {
      const row = calls.action_C[c]!;
      if (row >= 0) {
        for (let t = batch.rowStart_B1[row]!; t < batch.rowStart_B1[row + 1]!; t++) places.push(t);
      }
      tokenOffset_C1[c + 1] = places.length;
      if (successorOffset_C1[c] === successorOffset_C1[c + 1]) reward_C[c] = calls.reward_R[r]!;
    }
  }
  const result = causalGae(
    {
      values_T: Float32Array.from(places, (t) => values_T[t]!),
      callOffset_R1: calls.callOffset_R1,
      tokenOffset_C1,
      successorOffset_C1,
      successor_L,
      weight_L,
      reward_C,
    },
    { gamma: critic.gamma, lambda: critic.lambda },
  );
  const advantages_T = new Float32Array(batch.tokens_T.length).fill(NaN);
  const targets_T = new Float32Array(batch.tokens_T.length).fill(NaN);
  places.forEach((t, i) => {
    advantages_T[t] = result.advantages_T[i]!;
    targets_T[t] = result.targets_T[i]!;
  });
  return { advantages_T, targets_T };
}
