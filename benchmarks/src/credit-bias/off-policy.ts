import { addScore, softmax, type Gradient, type Outcome, type Table } from './process.js';
import type { ToyRun } from './toy.js';

/** π(token) / μ(token) for each token of a run, μ being what sampled. */
function ratios(run: ToyRun, target: Table, behaviour: Table): number[] {
  const probability = (table: Table, row: string, action: number): number =>
    softmax(table.get(row)!)[action]!;
  return run.calls.flatMap(({ tokens }) =>
    tokens.map(({ row, action }) => probability(target, row, action) / probability(behaviour, row, action)),
  );
}

/** Weight of each token, given the ratios of all tokens of its rollout. */
export const corrections: Readonly<Record<string, (ratios_T: readonly number[]) => number[]>> = {
  none: (ratios_T) => ratios_T.map(() => 1),
  'token, truncated at 2': (ratios_T) => ratios_T.map((ratio) => Math.min(ratio, 2)),
  'token, not truncated': (ratios_T) => [...ratios_T],
  'token, masked outside [0.5, 2]': (ratios_T) =>
    ratios_T.map((ratio) => (ratio < 0.5 || ratio > 2 ? 0 : ratio)),
  'rollout, truncated at 2': (ratios_T) => ratios_T.map(() => Math.min(product(ratios_T), 2)),
  'rollout, not truncated': (ratios_T) => ratios_T.map(() => product(ratios_T)),
};

const product = (values: readonly number[]): number => values.reduce((a, b) => a * b, 1);

/** The table that samples when the learner is ahead of the sampler: each first logit off by `shift`, in turn up and down. */
export function staleTable(target: Table, shift: number): Table {
  return new Map(
    [...target].map(([row, logits], i) => [
      row,
      logits.map((logit, action) => (action === 0 ? logit + (i % 2 ? shift : -shift) : logit)),
    ]),
  );
}

/** Gradients of the target's objective from runs that `behaviour` sampled, with R − E[R] as advantage. */
export function offPolicyGradients(
  outcomes: readonly Outcome<ToyRun>[],
  target: Table,
  behaviour: Table,
  baseline: number,
  correction: (ratios_T: readonly number[]) => number[],
): { probability: number; gradient: Gradient }[] {
  return outcomes.map(({ probability, run }) => {
    const weights_T = correction(ratios(run, target, behaviour));
    const gradient: Gradient = new Map();
    run.calls
      .flatMap(({ tokens }) => tokens)
      .forEach((token, t) => addScore(gradient, target, token, weights_T[t]! * (run.reward - baseline)));
    return { probability, gradient };
  });
}
