import { TreewardError } from '@treeward/base';
import type { EvaluationSummary } from '../run/summary.js';
import { comparePaired, type PairedComparison, type TaskScores } from '../statistics/summarise.js';
import { domainTable, type DomainRow } from './domain-table.js';

export interface ComparedRow {
  name: string;
  summary: EvaluationSummary;
  /** Against the first evaluation of the same harness and set; null for that one itself and without common tasks. */
  against: { name: string; paired: PairedComparison } | null;
}

export interface Comparison {
  rows: ComparedRow[];
  domains: DomainRow[];
  warnings: string[];
}

const scoresOf = (summary: EvaluationSummary): TaskScores[] =>
  summary.tasks.map(({ id, category, runs }) => ({ id, category, scores: runs.map(({ score }) => score) }));

/**
 * Evaluations side by side. Each is compared with the first of the same format and harness, else with the first of the same format,
 * over the tasks that both have a number for.
 * @throws TreewardError RUN_E_COMPARE without any
 */
export function compareEvaluations(summaries: readonly EvaluationSummary[]): Comparison {
  if (summaries.length === 0) throw new TreewardError('RUN_E_COMPARE', 'nothing to compare');
  const warnings: string[] = [];
  const rows = summaries.map((summary, at): ComparedRow => {
    const name = `${summary.identity.label} · ${summary.identity.harness} · ${summary.identity.format}`;
    if (!summary.complete) warnings.push(`${name} is partial: ${summary.note ?? ''}`);
    if (summary.runsPerTask < 2)
      warnings.push(`${name} has one run per task: how far runs differ is not known`);
    const earlier = summaries
      .slice(0, at)
      .filter(({ identity }) => identity.format === summary.identity.format);
    const base = earlier.find(({ identity }) => identity.harness === summary.identity.harness) ?? earlier[0];
    if (!base) return { name, summary, against: null };
    const paired = comparePaired(scoresOf(base), scoresOf(summary), { seed: 'compare' });
    if (paired.tasks < Math.max(base.tasks.length, summary.tasks.length)) {
      warnings.push(`${name}: only ${paired.tasks} tasks have a number in both`);
    }
    if (base.identity.judge !== summary.identity.judge)
      warnings.push(`${name}: another judge than the evaluation it is compared with`);
    return { name, summary, against: { name: `${base.identity.label} · ${base.identity.harness}`, paired } };
  });
  return { rows, domains: domainTable(summaries), warnings: [...new Set(warnings)] };
}
