import type { Comparison } from './comparison.js';
import { escapeXml } from './escape.js';
import { number } from './table.js';

const WIDTH = 960;
const ROW = 34;
const LEFT = 390;
/** Room for the mean and the difference beside it, in any of the usual fonts. */
const RIGHT = 130;
const TOP = 46;

/**
 * Mean scores with their intervals, one line per evaluation; the paired difference to the evaluation that each is compared with stands
 * beside it. Plain SVG, readable in light and dark.
 */
export function comparisonSvg({ rows }: Comparison): string {
  const height = TOP + rows.length * ROW + 40;
  const x = (score: number): number => LEFT + score * (WIDTH - LEFT - RIGHT);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map(
    (tick) =>
      `<line x1="${x(tick)}" y1="${TOP - 8}" x2="${x(tick)}" y2="${height - 32}" class="grid"/><text x="${x(tick)}" y="${height - 14}" class="tick">${tick}</text>`,
  );
  const lines = rows.map(({ name, summary, against }, at) => {
    const y = TOP + at * ROW + ROW / 2;
    const mean = summary.all.meanScore;
    const difference = against?.paired.difference;
    const label = `<text x="${LEFT - 12}" y="${y + 4}" class="label">${escapeXml(name.length > 48 ? `${name.slice(0, 47)}…` : name)}</text>`;
    if (!mean) return `${label}<text x="${x(0) + 6}" y="${y + 4}" class="note">not graded</text>`;
    const beside = difference ? ` ${difference.estimate >= 0 ? '+' : ''}${number(difference.estimate)}` : '';
    return `${label}<line x1="${x(mean.low)}" y1="${y}" x2="${x(mean.high)}" y2="${y}" class="bar"/><circle cx="${x(mean.estimate)}" cy="${y}" r="5" class="dot${summary.complete ? '' : ' partial'}"/><text x="${WIDTH - RIGHT + 8}" y="${y + 4}" class="note">${number(mean.estimate)}${escapeXml(beside)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="mean scores with 95 % intervals">
<style>text{font:13px system-ui,sans-serif;fill:#333}.label{text-anchor:end}.tick{text-anchor:middle;fill:#777}.note{fill:#555}.grid{stroke:#ccc}.bar{stroke:#4668a8;stroke-width:3}.dot{fill:#4668a8}.partial{fill:#fff;stroke:#4668a8;stroke-width:2}@media(prefers-color-scheme:dark){text{fill:#ddd}.note,.tick{fill:#aaa}.grid{stroke:#444}.bar{stroke:#8fb0f0}.dot{fill:#8fb0f0}.partial{fill:#111}}</style>
<text x="${LEFT}" y="22">mean score, 95 % interval over tasks (hollow: partial)</text>
${ticks.join('\n')}
${lines.join('\n')}
</svg>
`;
}
