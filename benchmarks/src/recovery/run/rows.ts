import type { BenchRow } from '@treeward/base';
import { reliability } from '../score/calibration.js';
import { addCounts, EDGE_TYPES, totalCounts, type EdgeScore, type Judged } from '../score/edge-score.js';
import { METHODS, type Tally } from './tally.js';

export interface Row extends BenchRow {
  /** What the value has to reach. */
  bar?: number;
}

/** A share that nothing was asked of is not 1 but not there. */
function share(
  name: string,
  part: number,
  n: number,
  better: Row['better'],
  bar?: number,
  config?: Row['config'],
): Row[] {
  if (n === 0) return [];
  return [
    {
      name,
      value: part / n,
      unit: 'share',
      better,
      n,
      ...(bar !== undefined && { bar }),
      ...(config && { config }),
    },
  ];
}

export function cleanRows(tally: Tally): Row[] {
  const rows = EDGE_TYPES.flatMap((type) => {
    const { truth, found, abstained, predicted, right } = tally.counts[type] ?? EMPTY;
    return [
      ...share(`clean/edge_precision/${type}`, right, predicted, 'higher', 0.99),
      ...share(`clean/edge_recall/${type}`, found, truth, 'higher', 0.99),
      ...share(`clean/edge_abstention/${type}`, abstained, truth, 'lower', 0.01),
    ];
  });
  const ambiguous = tally.counts.ambiguous ?? EMPTY;
  return [
    ...rows,
    ...share('clean/ambiguous_precision', ambiguous.right, ambiguous.predicted, 'higher'),
    ...share('clean/ambiguous_recall', ambiguous.found, ambiguous.truth, 'higher'),
    ...share('clean/role_accuracy', tally.roles.right, tally.roles.calls, 'higher', 0.99),
    ...share('clean/agent_accuracy', tally.agents.right, tally.agents.calls, 'higher'),
    ...share('clean/token_ownership', tally.ownership.right, tally.ownership.tokens, 'higher', 0.999),
    ...METHODS.slice(1).flatMap((method) => {
      const { predicted, right } = totalCounts(tally.baselines[method as keyof Tally['baselines']]);
      const { truth } = totalCounts(tally.counts);
      return [
        ...share(`clean/baseline/${method}/edge_precision`, right, predicted, 'higher'),
        ...share(`clean/baseline/${method}/edge_recall`, right, truth, 'higher'),
      ];
    }),
    ...METHODS.map((method): Row => ({
      name: `wrong_advantage/${method}`,
      value: tally.wrongAdvantage[method] / tally.rollouts,
      unit: 'share',
      better: 'lower',
      n: tally.rollouts,
      config: { faults: 'none', estimator: 'ppo', order: 'lineage', lambda: 0.95, values: 'oracle' },
      ...(method === 'treeward' && { bar: 0.01 }),
    })),
  ];
}

const EMPTY = { truth: 0, found: 0, abstained: 0, predicted: 0, right: 0 };

/** All fault conditions together, then each one on its own line. */
export function faultRows(tallies: readonly Tally[]): Row[] {
  const counts: EdgeScore['counts'] = {};
  const sum = { roles: [0, 0], tokens: [0, 0], rollouts: 0 };
  const judged: Judged[] = [];
  for (const tally of tallies) {
    addCounts(counts, tally.counts);
    for (const one of tally.judged) judged.push(one);
    sum.roles[0]! += tally.roles.right;
    sum.roles[1]! += tally.roles.calls;
    sum.tokens[0]! += tally.ownership.right;
    sum.tokens[1]! += tally.ownership.tokens;
    sum.rollouts += tally.rollouts;
  }
  const all = totalCounts(counts);
  return [
    ...share('faults/edge_precision/all', all.right, all.predicted, 'higher', 0.995),
    ...share('faults/edge_recall/all', all.found, all.truth, 'higher', 0.95),
    ...share('faults/edge_abstention/all', all.abstained, all.truth, 'lower', 0.05),
    ...EDGE_TYPES.flatMap((type) => {
      const { truth, found, abstained, predicted, right } = counts[type] ?? EMPTY;
      return [
        ...share(`faults/edge_precision/${type}`, right, predicted, 'higher', 0.98),
        ...share(`faults/edge_recall/${type}`, found, truth, 'higher', 0.95),
        ...share(`faults/edge_abstention/${type}`, abstained, truth, 'lower', 0.05),
      ];
    }),
    ...share('faults/role_accuracy', sum.roles[0]!, sum.roles[1]!, 'higher'),
    ...share('faults/token_ownership', sum.tokens[0]!, sum.tokens[1]!, 'higher', 0.999),
    ...calibrationRows(judged),
    ...METHODS.map((method): Row => ({
      name: `faults/wrong_advantage/${method}`,
      value: tallies.reduce((total, tally) => total + tally.wrongAdvantage[method], 0) / sum.rollouts,
      unit: 'share',
      better: 'lower',
      n: sum.rollouts,
    })),
    ...tallies.flatMap((tally) => {
      const { truth, found, abstained, predicted, right } = totalCounts(tally.counts);
      const config = {
        rollouts: tally.rollouts,
        calls: tally.calls,
        struck: tally.struck,
        abstention: abstained / truth,
        wrongAdvantage: tally.wrongAdvantage.treeward / tally.rollouts,
      };
      return [
        ...share(`faults/${tally.condition}/edge_precision`, right, predicted, 'higher', undefined, config),
        ...share(`faults/${tally.condition}/edge_recall`, found, truth, 'higher'),
      ];
    }),
  ];
}

/** Edges per type that a calibration error stands on. */
const CALIBRATION_N = 5000;

function calibrationRows(judged: readonly Judged[]): Row[] {
  return [...EDGE_TYPES, 'all' as const].flatMap((type): Row[] => {
    const part = judged.filter((one) => one.type !== 'ambiguous' && (type === 'all' || one.type === type));
    const { n, error, brier, constantBrier } = reliability(part);
    if (n === 0) return [];
    return [
      {
        name: `faults/calibration_error/${type}`,
        value: error,
        unit: 'share',
        better: 'lower',
        n,
        bar: 0.03,
        config: { bins: 10, enough: n >= CALIBRATION_N },
      },
      {
        name: `faults/brier/${type}`,
        value: brier,
        unit: '',
        better: 'lower',
        against: 'a constant confidence, the best one there is for this type',
        ratio: brier === 0 ? 1 : constantBrier / brier,
        n,
        config: { constant: constantBrier },
        ...(type === 'all' && { bar: constantBrier }),
      },
    ];
  });
}

export const meetsBar = ({ value, better, bar }: Row): boolean =>
  bar === undefined || (better === 'higher' ? value >= bar : value <= bar);
