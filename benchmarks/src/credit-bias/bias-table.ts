import { causalEstimator, type Order } from './causal-estimator.js';
import { exactCritic, type CriticView } from './critics.js';
import { outcomeEstimators, prefixBackup, type Estimator } from './estimators.js';
import { forkBias } from './forks.js';
import { groupEstimators, groupGradients } from './groups.js';
import { corrections, offPolicyGradients, staleTable } from './off-policy.js';
import {
  addScore,
  compare,
  enumerate,
  exactGradient,
  expectation,
  type Comparison,
  type Gradient,
} from './process.js';
import type { Toy, ToyRun } from './toy.js';
import { harnessTree, toys } from './toys.js';

export interface BiasRow extends Comparison {
  toy: string;
  option: string;
  lambda?: number;
}

export const LAMBDAS = [0, 0.5, 0.95, 1] as const;
const VIEWS: readonly CriticView[] = ['history', 'started', 'context'];
const ORDERS: readonly Order[] = ['lineage', 'chain'];
/** Rollouts of a group in the enumeration: 30³ groups of toy A. */
const GROUP_SIZE = 3;
/** Logit shift between sampler and learner in the off-policy rows. */
const STALENESS = 0.5;

/** The bias of every option on every toy, enumerated exactly. */
export function biasTable(): BiasRow[] {
  return [
    ...toys.flatMap(outcomeRows),
    ...toys.flatMap(criticRows),
    ...forkRows(),
    ...groupRows(harnessTree),
    ...offPolicyRows(harnessTree),
  ];
}

const reward = (run: ToyRun): number => run.reward;

function biasOf({ table, process }: Toy, estimator: Estimator): Comparison {
  const gradients = enumerate(table, process).map(({ probability, run }) => {
    const gradient: Gradient = new Map();
    const factors = estimator(run);
    run.calls.forEach(({ tokens }, i) =>
      tokens.forEach((token, t) => addScore(gradient, table, token, factors[i]![t]!)),
    );
    return { probability, gradient };
  });
  return compare(gradients, exactGradient(table, process, reward));
}

/** Options without a critic; those that leave out what a toy does not have would repeat another row. */
function outcomeRows(toy: Toy): BiasRow[] {
  const outcomes = enumerate(toy.table, toy.process);
  const any = (has: (run: ToyRun) => boolean): boolean => outcomes.some(({ run }) => has(run));
  const applies: Readonly<Record<string, boolean>> = {
    'failed attempts dropped': any(({ failed }) => failed !== undefined),
    'undelivered replies dropped, R': any(({ undelivered }) => undelivered !== undefined),
    'undelivered replies dropped, R − E[R]': any(({ undelivered }) => undelivered !== undefined),
    'leaf rewards backed up, mean': any(({ leafRewards }) => leafRewards !== undefined),
    'leaf rewards backed up, sum': any(({ leafRewards }) => leafRewards !== undefined),
    'leaf rewards backed up, max': any(({ leafRewards }) => leafRewards !== undefined),
  };
  return Object.entries(outcomeEstimators(expectation(outcomes, reward)))
    .filter(([option]) => applies[option] ?? true)
    .map(([option, estimator]) => ({ toy: toy.name, option, ...biasOf(toy, estimator) }));
}

function criticRows(toy: Toy): BiasRow[] {
  const outcomes = enumerate(toy.table, toy.process);
  const rows: BiasRow[] = [];
  for (const view of VIEWS) {
    const critic = exactCritic(outcomes, view);
    for (const order of ORDERS) {
      for (const lambda of LAMBDAS) {
        const estimator = causalEstimator(critic, order, lambda);
        rows.push({ toy: toy.name, option: `${order}, V(${view})`, lambda, ...biasOf(toy, estimator) });
      }
    }
  }
  const history = exactCritic(outcomes, 'history');
  for (const how of ['mean', 'max'] as const) {
    const option = `prefix tree, V(history), ${how} of children`;
    rows.push({ toy: toy.name, option, lambda: 0, ...biasOf(toy, prefixBackup(history, how)) });
  }
  return rows;
}

const forkRows = (): BiasRow[] =>
  [...forkBias()].flatMap(([option, against]) =>
    Object.entries(against).map(([objective, comparison]) => ({
      toy: `B against E ${objective}`,
      option,
      ...comparison,
    })),
  );

function groupRows(toy: Toy): BiasRow[] {
  const outcomes = enumerate(toy.table, toy.process);
  const exact = exactGradient(toy.table, toy.process, reward);
  const planned = expectation(outcomes, ({ calls }) =>
    calls.reduce((sum, { tokens }) => sum + tokens.length, 0),
  );
  return Object.entries(groupEstimators(planned)).map(([option, estimator]) => ({
    toy: `${toy.name}, groups of ${GROUP_SIZE}`,
    option,
    ...compare(groupGradients(toy.table, outcomes, GROUP_SIZE, estimator), exact),
  }));
}

function offPolicyRows(toy: Toy): BiasRow[] {
  const behaviour = staleTable(toy.table, STALENESS);
  const outcomes = enumerate(behaviour, toy.process);
  const baseline = expectation(enumerate(toy.table, toy.process), reward);
  const exact = exactGradient(toy.table, toy.process, reward);
  return Object.entries(corrections).map(([option, correction]) => ({
    toy: `${toy.name}, sampler off by ${STALENESS} logits`,
    option: `importance weight: ${option}`,
    ...compare(offPolicyGradients(outcomes, toy.table, behaviour, baseline, correction), exact),
  }));
}
