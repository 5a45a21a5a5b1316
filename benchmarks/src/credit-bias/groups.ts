import { groupAdvantages } from '@treeward/learner';
import { addScore, type Gradient, type Outcome, type Table } from './process.js';
import { presetEstimator, presetNames } from './preset-estimators.js';
import type { ToyRun } from './toy.js';

/** Factors of a group of independent rollouts of one task: one per rollout, call and token. */
export type GroupEstimator = (runs: readonly ToyRun[]) => number[][][];

/** Every token of a rollout alike. */
const perRollout =
  (factors: (runs: readonly ToyRun[]) => number[]): GroupEstimator =>
  (runs) => {
    const all = factors(runs);
    return runs.map(({ calls }, i) => calls.map(({ tokens: own }) => own.map(() => all[i]!)));
  };

const rewards = (runs: readonly ToyRun[]): number[] => runs.map(({ reward }) => reward);
const tokens = (run: ToyRun): number => run.calls.reduce((sum, call) => sum + call.tokens.length, 0);

const advantages = (runs: readonly ToyRun[], estimator: 'rloo' | 'grpo' | 'grpo-no-std'): number[] =>
  groupAdvantages(
    rewards(runs),
    runs.map(() => 'group'),
    { estimator },
  ).map((advantage) => advantage ?? 0);

/** `planned`: expected tokens of a rollout, what the constant normaliser divides by. */
export const groupEstimators = (planned: number): Readonly<Record<string, GroupEstimator>> => ({
  'rloo, constant normaliser': perRollout((runs) => advantages(runs, 'rloo')),
  'group mean without std (× n/(n−1) is rloo)': perRollout((runs) => advantages(runs, 'grpo-no-std')),
  'grpo: divided by the group std': perRollout((runs) => advantages(runs, 'grpo')),
  "rloo, divided by the batch's tokens": perRollout((runs) => {
    const all = runs.reduce((sum, run) => sum + tokens(run), 0);
    return advantages(runs, 'rloo').map((advantage) => (advantage * planned * runs.length) / all);
  }),
  "rloo, divided by each rollout's own tokens": perRollout((runs) =>
    advantages(runs, 'rloo').map((advantage, i) => (advantage * planned) / tokens(runs[i]!)),
  ),
  ...Object.fromEntries(presetNames.map((name) => [`preset ${name}`, presetEstimator(name, planned)])),
});

/** Every group of `size` rollouts with its probability and its gradient (mean over rollouts). */
export function* groupGradients(
  table: Table,
  outcomes: readonly Outcome<ToyRun>[],
  size: number,
  estimator: GroupEstimator,
): Generator<{ probability: number; gradient: Gradient }> {
  const scores = outcomes.map(({ run }) =>
    run.calls.map(({ tokens: own }) =>
      own.map((token) => {
        const score: Gradient = new Map();
        addScore(score, table, token, 1 / size);
        return score;
      }),
    ),
  );
  const picked: number[] = [];
  function* pick(probability: number): Generator<{ probability: number; gradient: Gradient }> {
    if (picked.length < size) {
      for (let i = 0; i < outcomes.length; i++) {
        picked.push(i);
        yield* pick(probability * outcomes[i]!.probability);
        picked.pop();
      }
      return;
    }
    const factors = estimator(picked.map((i) => outcomes[i]!.run));
    const gradient: Gradient = new Map();
    picked.forEach((i, k) =>
      scores[i]!.forEach((calls, c) =>
        calls.forEach((score, t) => {
          const factor = factors[k]![c]![t]!;
          if (factor === 0) return;
          for (const [key, value] of score) gradient.set(key, (gradient.get(key) ?? 0) + factor * value);
        }),
      ),
    );
    yield { probability, gradient };
  }
  yield* pick(1);
}
