import type { Comparison } from './comparison.js';
import { DOMAIN_HEADINGS } from './domain-table.js';
import { number, percent, textTable } from './table.js';

export const COMPARISON_HEADINGS = [
  'evaluation',
  'tasks',
  'runs',
  'mean [95 %]',
  'pass@1',
  'against',
  'difference [95 %]',
  '+/−/=',
  'p',
];

/** The cells of the one table, for text and HTML alike. */
export function comparisonCells({ rows }: Comparison): string[][] {
  return rows.map(({ name, summary: { all, runsPerTask }, against }) => {
    const { meanScore } = all;
    const paired = against?.paired;
    return [
      name,
      String(all.tasks),
      String(runsPerTask),
      meanScore ? `${number(meanScore.estimate)} [${number(meanScore.low)}, ${number(meanScore.high)}]` : '–',
      percent(all.passRate),
      against?.name ?? '–',
      paired?.difference
        ? `${paired.difference.estimate >= 0 ? '+' : ''}${number(paired.difference.estimate)} [${number(paired.difference.low)}, ${number(paired.difference.high)}]`
        : '–',
      paired ? `${paired.sign.wins}/${paired.sign.losses}/${paired.sign.ties}` : '–',
      paired ? (paired.sign.p < 0.001 ? '<0.001' : number(paired.sign.p)) : '–',
    ];
  });
}

/** Cells of the table in the paper's layout, percent. */
export const domainCells = ({ domains }: Comparison): string[][] =>
  domains.map(({ harness, model, cells, source, sets }) => [
    `${harness}: ${model}`,
    ...cells.map((cell) => (cell === null ? '–' : cell.toFixed(2))),
    sets.length === 0 ? source : `${source}: ${sets.join(', ')}`,
  ]);

export function describeComparison(comparison: Comparison): string {
  const parts = [textTable(COMPARISON_HEADINGS, comparisonCells(comparison))];
  if (comparison.domains.length > 0) {
    parts.push(textTable(['percent', ...DOMAIN_HEADINGS, 'source'], domainCells(comparison)));
    parts.push(
      'published: ClawGym II (arXiv 2608.16798v1), other models and machines, a GPT-5.4 judge; not measured here',
    );
  }
  return [...parts, ...comparison.warnings.map((warning) => `warning: ${warning}`)].join('\n\n');
}
