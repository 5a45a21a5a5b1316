import type { EvaluationSummary } from '../run/summary.js';
import type { ScoreSummary } from '../statistics/summarise.js';
import { number, percent, textTable } from './table.js';

const interval = ({ meanScore }: ScoreSummary): string =>
  meanScore ? `${number(meanScore.estimate)} [${number(meanScore.low)}, ${number(meanScore.high)}]` : '–';

const row = (name: string, summary: ScoreSummary): string[] => [
  name,
  String(summary.tasks),
  interval(summary),
  percent(summary.passRate),
  percent(summary.coverage, 0),
];

/** An evaluation in plain text: scores by category, what they rest on, what they cost. */
export function describeEvaluation(summary: EvaluationSummary): string {
  const { identity, all, frozen, cost, agreement } = summary;
  const headings = ['', 'tasks', 'mean score [95 %]', `pass@1 ≥ ${summary.threshold}`, 'coverage'];
  const rows = [
    ...summary.categories.map(({ name, summary: of }) => row(name, of)),
    row('all', all),
    ...(frozen.tasks < all.tasks ? [row('frozen (no live, no quarantined)', frozen)] : []),
  ];
  const passHat = all.passHat.filter(({ k }) => k > 1).map(({ k, value }) => `pass^${k} ${percent(value)}`);
  const { variance } = all;
  const lines = [
    `${identity.label} · ${identity.harness} ${summary.harnessVersion} · ${summary.set.name}${summary.set.version ? ` ${summary.set.version}` : ''} · ${identity.suite} · ${summary.runsPerTask} runs per task`,
    ...(summary.set.licence ? [`licence of the set: ${summary.set.licence}`] : []),
    textTable(headings, rows),
    ...(summary.complete ? [] : [`partial: no overall score of a suite (${summary.note ?? ''})`]),
    ...(summary.complete && summary.note ? [`note: ${summary.note}`] : []),
    `missing counted as 0: ${number(all.meanScoreMissingAsZero)}`,
    ...(passHat.length > 0 ? [passHat.join('  ')] : []),
    ...(variance
      ? [
          `variance: task ${number(variance.task)}, run ${number(variance.run)}; standard error ${number(variance.seSameTasks)} for these tasks, ${number(variance.seNewTasks)} for others`,
        ]
      : ['one run per task: no spread of runs is known, so do not compare single scores']),
    ...(agreement
      ? [
          `judge agreement: exact ${percent(agreement.exact)}, alpha ${number(agreement.alpha)}, weighted kappa ${number(agreement.weightedKappa)} over ${agreement.units} criteria`,
        ]
      : []),
    ...(summary.renormalised > 0
      ? [`warning: ${summary.renormalised} runs count one side of a hybrid only`]
      : []),
    `cost: policy $${cost.policyUsd.toFixed(4)} (${cost.promptTokens} + ${cost.sampledTokens} tokens), judge $${cost.judgeUsd.toFixed(4)} (${cost.judgeCached} cached)`,
  ];
  return lines.join('\n');
}
