import { setImmediate } from 'node:timers/promises';
import { TreewardError } from '@treeward/base';
import { valueLoss } from '@treeward/native';
import { buildForest, type Forest } from '../pack/forest.js';
import { microBatches, type MicroBatch } from '../pack/micro-batches.js';
import { rowOfToken, trainableTokens, type Trainable } from '../trainable.js';
import type { OptimizerStep, PackedTrees, PolicyLoss, UpdateMetrics } from '../types.js';
import { GradientSum, withFused } from '../weights-store.js';
import { causalCredit, criticOf, criticValues, valuedTokens } from './critic.js';
import { criticStep, explainedVariance, type ValueTerms } from './critic-step.js';
import { miniBatchPlan } from './mini-batches.js';
import { normaliserOf, tokenWeights } from './normaliser.js';
import { PolicyMeter, type MiniBatchMeter } from './policy-meter.js';
import { policyObjective, type PolicyTerms } from './policy-objective.js';
import { runMicroBatch, type MicroObjective } from './run-micro-batch.js';
import { scoreTokens } from './score.js';
import { disposeState, type TrainState, type Workbench } from './state.js';
import { stepModel } from './step-model.js';

/**
 * All epochs and mini-batches of one batch. Returns the new state and leaves the old one untouched: whoever called
 * replaces it, or, on an error, keeps it.
 *
 * `logp_old` comes from the weights at the start. A mini-batch is a set of rollouts. Those whose advantages are all 0 are
 * scored, for the report, and not trained (unless a KL or entropy term gives them a gradient). Where no token has a gradient
 * the optimizer does not step at all: moments of earlier steps move nothing.
 *
 * @throws TreewardError LEARNER_E_MISMATCH when engine and learner disagree too much to train
 */
export async function policyUpdate(
  bench: Workbench,
  start: TrainState,
  batch: PackedTrees,
  loss: PolicyLoss,
  step: OptimizerStep,
): Promise<{ state: TrainState; metrics: UpdateMetrics }> {
  const started = performance.now();
  const { ops, policy } = bench;
  const forest = buildForest(batch);
  const trainable = trainableTokens(batch, start.version - (loss.staleness ?? Infinity));
  const valued = loss.critic ? valuedTokens(batch) : [];
  if (loss.critic) leaveOut(trainable, valued);
  const wanted: number[] = [];
  trainable.mask_T.forEach((usable, t) => usable && wanted.push(t));
  const row_T = rowOfToken(batch);
  const rollout_T = row_T.map((row) => batch.rollout_B[row]!);
  const version_T = row_T.map((row) => batch.version_B?.[row] ?? -1);

  const old = await scoreTokens(bench, start.policy.params, batch, forest, wanted);
  const reference = await referenceScores(bench, batch, forest, loss, wanted);
  const credit = loss.critic ? await criticCredit(bench, start, batch, forest, loss.critic, valued) : null;

  const ofRollout = groupBy(wanted, (token) => rollout_T[token]!);
  const terms: PolicyTerms = {
    batch,
    loss,
    advantages_T: credit?.advantages_T ?? batch.advantages_T,
    logpOld_T: old.logprobs_T,
    logpRef_T: reference,
    weight_T: tokenWeights(loss, ofRollout, batch.tokens_T.length),
    rollout_T,
  };
  const meter = new PolicyMeter(terms, trainable, old, { version_T, version: start.version });
  meter.guard(loss.mismatchMax ?? Infinity);

  const always = Boolean(loss.klCoef ?? 0) || Boolean(loss.entropyCoef ?? 0);
  const rollouts = [...ofRollout.keys()];
  const active = rollouts.filter(
    (rollout) => always || ofRollout.get(rollout)!.some((token) => terms.advantages_T[token] !== 0),
  );
  const valuedOf = groupBy(valued, (token) => rollout_T[token]!);
  const tokensOf = (map: ReadonlyMap<number, number[]>, members: readonly number[]): number[] =>
    members.flatMap((rollout) => map.get(rollout) ?? []);
  const cutting = {
    budget: bench.microBatchTokens,
    ...(loss.objective === 'gspo' && { together: (token: number): number => rollout_T[token]! }),
  };
  const shared = credit !== null && !criticOf(bench, start).own;

  let state = start;
  const replace = (next: TrainState): void => {
    if (state !== start) disposeState(state, start, next);
    state = next;
  };

  /** One mini-batch; false when the epochs should stop. */
  const miniBatch = async (members: readonly number[]): Promise<boolean> => {
    const tokens = tokensOf(ofRollout, members);
    const normaliser = normaliserOf(loss, tokens.length, rollouts.length);
    const measured = meter.miniBatch();
    const objective: MicroObjective = {
      bannedIds: batch.bannedIds,
      wantEntropy: Boolean(loss.entropyCoef ?? 0),
      tokens: (values, micro) => {
        const { result, grads } = policyObjective(terms, normaliser, values, micro);
        measured.add(result);
        measured.hasGradient ||= grads.gradEntropy_M !== undefined;
        return grads;
      },
      ...(shared && { values: sharedValues(loss, credit, tokens.length, measured) }),
    };
    const gradients = new GradientSum(ops, policy);
    try {
      await withFused(ops, policy, state.policy.params, async (fused) => {
        for (const micro of microBatches(batch, forest, tokens, cutting)) {
          gradients.add(runMicroBatch(bench, policy.config, fused, micro, objective)!);
          measured.computed += micro.tokens_N.length;
          await setImmediate();
        }
      });
      if (loss.klStop > 0 && measured.approxKl > loss.klStop) return false;
      if (!gradients.empty && measured.hasGradient) {
        const next = stepModel(ops, policy, state.policy, gradients, step);
        replace({ ...state, policy: next.model });
        meter.step(next.gradNorm);
      }
    } finally {
      gradients.dispose();
    }
    if (loss.critic && credit && !shared) {
      const own = tokensOf(valuedOf, members);
      const next = await criticStep(
        bench,
        bench.critic!,
        state.critic!,
        batch,
        forest,
        loss.critic,
        credit,
        own,
        step,
      );
      replace({ ...state, critic: next.model });
      measured.valueLoss += next.loss;
    }
    return true;
  };

  try {
    for (const members of miniBatchPlan(active, loss)) {
      if (await miniBatch(members)) continue;
      meter.stopped = true;
      break;
    }
  } catch (error) {
    if (state !== start) disposeState(state, start);
    throw error;
  } finally {
    ops.trim();
  }
  const seconds = (performance.now() - started) / 1000;
  return {
    state,
    metrics: {
      ...meter.finish(),
      ...(credit && {
        'value/explained_variance': explainedVariance(credit, valued),
        ...spreadOf(credit, valued),
      }),
      'optim/lr': step.lr,
      'progress/tokens_distinct': forest.tokens_F.length,
      'progress/rollouts_zero_advantage': rollouts.length - active.length,
      'perf/tokens_per_s': batch.tokens_T.length / seconds,
    },
  };
}

/** Under a critic a token without a part in credit (a side call's) cannot train. */
function leaveOut(trainable: Trainable, valued: readonly number[]): void {
  const known = new Set(valued);
  trainable.mask_T.forEach((usable, t) => {
    if (!usable || known.has(t)) return;
    trainable.mask_T[t] = 0;
    trainable.trained -= 1;
    trainable.unusable += 1;
  });
}

async function referenceScores(
  bench: Workbench,
  batch: PackedTrees,
  forest: Forest,
  loss: PolicyLoss,
  wanted: readonly number[],
): Promise<Float32Array | null> {
  if (!loss.klCoef) return null;
  if (!bench.reference) {
    throw new TreewardError('LEARNER_E_OPTIONS', 'klCoef is set, but the learner has no reference weights', {
      hints: ['give `reference` (a checkpoint) when opening the learner'],
    });
  }
  const plain = { ...bench, policy: { ...bench.policy, lora: null } };
  return (await scoreTokens(plain, bench.reference, batch, forest, wanted)).logprobs_T;
}

async function criticCredit(
  bench: Workbench,
  start: TrainState,
  batch: PackedTrees,
  forest: Forest,
  critic: NonNullable<PolicyLoss['critic']>,
  valued: readonly number[],
): Promise<ValueTerms & { advantages_T: Float32Array }> {
  const valuesOld_T = await criticValues(bench, start, batch, forest, critic, valued);
  return { valuesOld_T, ...causalCredit(batch, valuesOld_T, critic) };
}

/** What the critic's advantages are, over the tokens that have one. */
function spreadOf(
  { advantages_T }: { advantages_T: Float32Array },
  tokens: readonly number[],
): UpdateMetrics {
  if (tokens.length === 0) return {};
  const mean = (of: (token: number) => number): number =>
    tokens.reduce((sum, token) => sum + of(token), 0) / tokens.length;
  const centre = mean((token) => advantages_T[token]!);
  return {
    'adv/mean': centre,
    'adv/std': Math.sqrt(mean((token) => (advantages_T[token]! - centre) ** 2)),
    'adv/frac_zero': mean((token) => (advantages_T[token] === 0 ? 1 : 0)),
  };
}

/** The value loss of a head on the policy's own trunk, on the tokens that train. */
function sharedValues(
  loss: PolicyLoss,
  { valuesOld_T, targets_T }: ValueTerms,
  normaliser: number,
  measured: MiniBatchMeter,
): NonNullable<MicroObjective['values']> {
  const { clip, coef } = loss.critic!;
  return (values_M, { source_M }: MicroBatch) => {
    const result = valueLoss(
      {
        values_T: values_M,
        valuesOld_T: Float32Array.from(source_M, (token) => valuesOld_T[token]!),
        targets_T: Float32Array.from(source_M, (token) => targets_T[token]!),
        mask_T: new Float32Array(values_M.length).fill(1),
      },
      { clip: clip ?? Infinity, normaliser },
    );
    measured.valueLoss += result.loss;
    measured.hasGradient ||= result.gradValues_T.some((g) => g !== 0);
    return result.gradValues_T.map((g) => g * coef);
  };
}

function groupBy(tokens: readonly number[], key: (token: number) => number): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  for (const token of tokens) {
    const group = groups.get(key(token));
    if (group) group.push(token);
    else groups.set(key(token), [token]);
  }
  return groups;
}
