import { basename } from 'node:path';
import { TreewardError } from '@treeward/base';
import type { EvaluationSummary } from '../run/summary.js';
import { comparePaired, type PairedComparison, type TaskScores } from '../statistics/summarise.js';
import { domainTable, type DomainRow } from './domain-table.js';

export interface ComparedRow {
  name: string;
  summary: EvaluationSummary;
  /** Against the first evaluation of the same tasks and harness, else of the same tasks; null without an earlier one. */
  against: { name: string; paired: PairedComparison } | null;
}

export interface Comparison {
  rows: ComparedRow[];
  domains: DomainRow[];
  warnings: string[];
}

const scoresOf = (summary: EvaluationSummary): TaskScores[] =>
  summary.tasks.map(({ id, category, runs }) => ({ id, category, scores: runs.map(({ score }) => score) }));

/** Whether two evaluations have tasks in common: those of one name in another format are other tasks. */
function comparable(one: EvaluationSummary, other: EvaluationSummary): boolean {
  if (one.identity.format !== other.identity.format) return false;
  const ids = new Set(one.tasks.map(({ id }) => id));
  return other.tasks.some(({ id }) => ids.has(id));
}

/** Label, harness and format; the set as well where that names two of them. */
function namesOf(summaries: readonly EvaluationSummary[]): string[] {
  const plain = summaries.map(
    ({ identity: { label, harness, format } }) => `${label} · ${harness} · ${format}`,
  );
  return plain.map((name, at) =>
    plain.indexOf(name) === plain.lastIndexOf(name)
      ? name
      : `${name} · ${basename(summaries[at]!.identity.tasks)}`,
  );
}

/**
 * Evaluations side by side. Each is compared with the first that has tasks in common and the same harness, else with the first that has
 * tasks in common, over the tasks that both have a number for.
 * @throws TreewardError RUN_E_COMPARE without any
 */
export function compareEvaluations(summaries: readonly EvaluationSummary[]): Comparison {
  if (summaries.length === 0) throw new TreewardError('RUN_E_COMPARE', 'nothing to compare');
  const warnings: string[] = [];
  const names = namesOf(summaries);
  const rows = summaries.map((summary, at): ComparedRow => {
    const name = names[at]!;
    if (!summary.complete) warnings.push(`${name} is partial: ${summary.note ?? ''}`);
    const earlier = summaries.slice(0, at).filter((other) => comparable(other, summary));
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
  const single = rows.filter(({ summary }) => summary.runsPerTask < 2).map(({ name }) => name);
  if (single.length > 0) {
    const which = single.length > 1 && single.length === rows.length ? 'all' : single.join(', ');
    warnings.push(`one run per task: how far runs differ is not known (${which})`);
  }
  return { rows, domains: domainTable(summaries), warnings: [...new Set(warnings)] };
}
