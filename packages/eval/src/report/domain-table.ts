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
}

export const DOMAIN_HEADINGS: readonly string[] = ['Pinch', ...DOMAINS.map(({ short }) => short), 'Avg'];

/** Evaluations in the paper's layout, one row for each harness and label, with the paper's rows below. */
export function domainTable(
  summaries: readonly EvaluationSummary[],
  options: { published?: boolean } = {},
): DomainRow[] {
  const rows = new Map<string, DomainRow>();
  for (const summary of summaries) {
    const { harness, label, format } = summary.identity;
    if (format !== 'clawgym' && format !== 'pinchbench') continue;
    const row = rows.get(`${harness}\n${label}`) ?? {
      harness,
      model: label,
      cells: DOMAIN_HEADINGS.map(() => null),
      source: 'measured' as const,
    };
    rows.set(`${harness}\n${label}`, row);
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
    })),
  ];
}
