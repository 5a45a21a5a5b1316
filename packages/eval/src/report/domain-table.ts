import { basename } from 'node:path';
import { DOMAINS } from '../formats/domains.js';
import type { EvaluationSummary } from '../run/summary.js';
import { PUBLISHED } from './published.js';

export interface DomainRow {
  harness: string;
  model: string;
  /** Percent; null: no number. PinchBench, the six domains, average. */
  cells: (number | null)[];
  /** `published`: from the paper, other models on other machines. `partial`: not the whole set. */
  source: 'measured' | 'partial' | 'published';
  /** Of a measured row: on what, so that own tasks are not read as the benchmark. */
  sets: string[];
}

export const DOMAIN_HEADINGS: readonly string[] = ['Pinch', ...DOMAINS.map(({ short }) => short), 'Avg'];

/**
 * Evaluations in the paper's layout, one row for each harness and label (another set of the same format is another row), with the
 * paper's rows below.
 */
export function domainTable(
  summaries: readonly EvaluationSummary[],
  options: { published?: boolean } = {},
): DomainRow[] {
  const rows = new Map<string, DomainRow>();
  const seen: string[] = [];
  for (const summary of summaries) {
    const { harness, label, format } = summary.identity;
    if (format !== 'clawgym' && format !== 'pinchbench') continue;
    const before = seen.filter((key) => key === `${format}\n${harness}\n${label}`).length;
    seen.push(`${format}\n${harness}\n${label}`);
    const key = `${harness}\n${label}\n${before}`;
    const row: DomainRow = rows.get(key) ?? {
      harness,
      model: label,
      cells: DOMAIN_HEADINGS.map(() => null),
      source: 'measured',
      sets: [],
    };
    rows.set(key, row);
    row.sets.push(`${basename(summary.identity.tasks)} (${summary.tasks.length})`);
    if (!summary.complete) row.source = 'partial';
    const percent = (value: number | null | undefined): number | null => (value == null ? null : value * 100);
    if (format === 'pinchbench') row.cells[0] = percent(summary.all.meanScore?.estimate);
    else {
      DOMAINS.forEach(({ name }, at) => {
        const found = summary.categories.find((category) => category.name === name);
        row.cells[at + 1] = percent(found?.summary.meanScore?.estimate);
      });
      row.cells[DOMAIN_HEADINGS.length - 1] = percent(summary.all.meanScore?.estimate);
    }
  }
  if (options.published === false || rows.size === 0) return [...rows.values()];
  return [
    ...rows.values(),
    ...PUBLISHED.map(({ harness, model, pinchbench, domains, average }) => ({
      harness,
      model,
      cells: [pinchbench, ...domains, average],
      source: 'published' as const,
      sets: [],
    })),
  ];
}
