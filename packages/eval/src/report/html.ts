import type { EvaluationSummary } from '../run/summary.js';
import type { Comparison } from './comparison.js';
import { COMPARISON_HEADINGS, comparisonCells, domainCells } from './describe-comparison.js';
import { describeEvaluation } from './describe.js';
import { DOMAIN_HEADINGS } from './domain-table.js';
import { escapeXml } from './escape.js';
import { comparisonSvg } from './svg.js';
import { number } from './table.js';

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px;margin:1rem 0}td,th{padding:.25rem .6rem;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}tr.published{color:#777}.scroll{overflow-x:auto}pre{font-size:12px;overflow-x:auto;background:#f5f5f5;padding:.8rem}.warning{color:#a04000}svg{max-width:100%;height:auto}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}td,th{border-color:#333}pre{background:#1c1c1c}.warning{color:#e0a060}}`;

const tableHtml = (
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  classOf: (row: readonly string[]) => string,
): string =>
  `<div class="scroll"><table><thead><tr>${headings.map((heading) => `<th>${escapeXml(heading)}</th>`).join('')}</tr></thead><tbody>${rows
    .map(
      (row) =>
        `<tr class="${classOf(row)}">${row.map((cell) => `<td>${escapeXml(cell)}</td>`).join('')}</tr>`,
    )
    .join('\n')}</tbody></table></div>`;

/** Each task's mean in each evaluation: where the differences are. */
function taskTable(summaries: readonly EvaluationSummary[]): string {
  const ids = [...new Set(summaries.flatMap(({ tasks }) => tasks.map(({ id }) => id)))];
  const maps = summaries.map(({ tasks }) => new Map(tasks.map((task) => [task.id, task])));
  const rows = ids.map((id) => [
    id,
    ...maps.map((tasks) => {
      const scores = tasks.get(id)?.runs.map(({ score }) => score) ?? [];
      const known = scores.filter((score) => score !== null);
      if (known.length === 0) return scores.length > 0 ? 'not graded' : '–';
      const mean = number(known.reduce((a, b) => a + b, 0) / known.length);
      return known.length < scores.length ? `${mean} (${known.length}/${scores.length})` : mean;
    }),
  ]);
  return tableHtml(
    ['task', ...summaries.map(({ identity }) => `${identity.label} · ${identity.harness}`)],
    rows,
    () => '',
  );
}

/** The comparison as one page that needs nothing else. */
export function comparisonHtml(comparison: Comparison): string {
  const summaries = comparison.rows.map(({ summary }) => summary);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Treeward evaluation</title><style>${STYLE}</style></head><body>
<h1>Evaluation</h1>
${comparisonSvg(comparison)}
${tableHtml(COMPARISON_HEADINGS, comparisonCells(comparison), () => '')}
${comparison.warnings.map((warning) => `<p class="warning">${escapeXml(warning)}</p>`).join('\n')}
${comparison.domains.length > 0 ? `<h2>In the layout of ClawGym II, percent</h2>${tableHtml(['', ...DOMAIN_HEADINGS, 'source'], domainCells(comparison), (row) => (row.at(-1) === 'published' ? 'published' : ''))}<p>Rows marked published are from arXiv 2608.16798v1: other models and machines, a GPT-5.4 judge. They were not measured here.</p>` : ''}
<h2>Tasks</h2>
${taskTable(summaries)}
<h2>Each evaluation</h2>
${summaries.map((summary) => `<pre>${escapeXml(describeEvaluation(summary))}</pre>`).join('\n')}
</body></html>
`;
}
