import { groupAdvantages } from '@treeward/learner';
import { addScore, type Gradient, type Outcome, type Table } from './process.js';
import type { ToyRun } from './toy.js';

/** Factor of each rollout's whole score in a group of independent rollouts of one task. */
export type GroupEstimator = (runs: readonly ToyRun[]) => number[];

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
  'rloo, constant normaliser': (runs) => advantages(runs, 'rloo'),
  'group mean without std (× n/(n−1) is rloo)': (runs) => advantages(runs, 'grpo-no-std'),
  'grpo: divided by the group std': (runs) => advantages(runs, 'grpo'),
  "rloo, divided by the batch's tokens": (runs) => {
    const all = runs.reduce((sum, run) => sum + tokens(run), 0);
    return advantages(runs, 'rloo').map((advantage) => (advantage * planned * runs.length) / all);
  },
  "rloo, divided by each rollout's own tokens": (runs) =>
    advantages(runs, 'rloo').map((advantage, i) => (advantage * planned) / tokens(runs[i]!)),
});

/** Every group of `size` rollouts with its probability and its gradient (mean over rollouts). */
export function* groupGradients(
  table: Table,
  outcomes: readonly Outcome<ToyRun>[],
  size: number,
  estimator: GroupEstimator,
): Generator<{ probability: number; gradient: Gradient }> {
  const scores = outcomes.map(({ run }) => {
    const score: Gradient = new Map();
    for (const { tokens: own } of run.calls) for (const token of own) addScore(score, table, token, 1);
    return score;
  });
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
    picked.forEach((i, k) => {
      for (const [key, value] of scores[i]!) {
        gradient.set(key, (gradient.get(key) ?? 0) + (factors[k]! * value) / size);
      }
    });
    yield { probability, gradient };
  }
  yield* pick(1);
}
