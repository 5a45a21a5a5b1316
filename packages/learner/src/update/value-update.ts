import { buildForest } from '../pack/forest.js';
import { rowOfToken } from '../trainable.js';
import type { OptimizerStep, PackedTrees, UpdateMetrics, ValueLoss } from '../types.js';
import { TreewardError } from '@treeward/base';
import { causalCredit, criticValues, valuedTokens } from './critic.js';
import { criticStep, explainedVariance } from './critic-step.js';
import { miniBatchPlan } from './mini-batches.js';
import { disposeState, type TrainState, type Workbench } from './state.js';

/**
 * The critic alone, towards what the batch's rollouts were worth: before the policy moves for the first time its values are
 * made to mean something. The policy is not touched.
 *
 * @throws TreewardError LEARNER_E_CRITIC when there is no value model of its own
 */
export async function valueUpdate(
  bench: Workbench,
  start: TrainState,
  batch: PackedTrees,
  loss: ValueLoss,
  step: OptimizerStep,
): Promise<{ state: TrainState; metrics: UpdateMetrics }> {
  const { critic: model } = bench;
  if (!model || !start.critic) {
    throw new TreewardError('LEARNER_E_CRITIC', 'value training needs a value model of its own', {
      hints: ["open the learner with `critic: { kind: 'model' }`"],
    });
  }
  const forest = buildForest(batch);
  const tokens = valuedTokens(batch);
  const row_T = rowOfToken(batch);
  const ofRollout = new Map<number, number[]>();
  for (const token of tokens) {
    const rollout = batch.rollout_B[row_T[token]!]!;
    ofRollout.set(rollout, [...(ofRollout.get(rollout) ?? []), token]);
  }
  const valuesOld_T = await criticValues(bench, start, batch, forest, loss.critic, tokens);
  const credit = { valuesOld_T, ...causalCredit(batch, valuesOld_T, loss.critic) };
  let critic = start.critic;
  const losses: number[] = [];
  const norms: number[] = [];
  try {
    for (const members of miniBatchPlan([...ofRollout.keys()], loss)) {
      const own = members.flatMap((rollout) => ofRollout.get(rollout)!);
      const next = await criticStep(bench, model, critic, batch, forest, loss.critic, credit, own, step);
      if (critic !== start.critic)
        disposeState({ ...start, critic }, start, { ...start, critic: next.model });
      critic = next.model;
      losses.push(next.loss);
      norms.push(next.gradNorm);
    }
  } catch (error) {
    if (critic !== start.critic) disposeState({ ...start, critic }, start);
    throw error;
  } finally {
    bench.ops.trim();
  }
  const mean = (list: readonly number[]): number =>
    list.reduce((a, b) => a + b, 0) / Math.max(1, list.length);
  return {
    state: { ...start, critic },
    metrics: {
      'loss/value': mean(losses),
      'value/explained_variance': explainedVariance(credit, tokens),
      'optim/grad_norm_value': mean(norms),
      'optim/lr': loss.critic.lr,
      'optim/updates': norms.length,
    },
  };
}
