import { meetsBar, type Row } from './rows.js';
import type { Failure } from './tally.js';

/** Rows as a table for people; a row that misses its bar says so. */
export function table(rows: readonly Row[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  return rows
    .map((row) => {
      const bar = row.bar === undefined ? '' : `${row.better === 'higher' ? '≥' : '≤'} ${short(row.bar)}`;
      const verdict = row.bar === undefined ? '' : meetsBar(row) ? 'ok' : 'MISSED';
      const value = `${short(row.value)} ${row.unit === 'share' ? '' : row.unit}`.trim();
      return `${row.name.padEnd(width)}  ${value.padStart(9)}  ${bar.padEnd(9)}  ${verdict.padEnd(6)}  n=${row.n}`;
    })
    .join('\n');
}

const short = (value: number): string =>
  Number.isInteger(value) ? String(value) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(4);

/** The most frequent kinds of failure with two examples each. */
export function failureTable(failures: readonly Failure[], kinds: number): string {
  const groups = new Map<string, Failure[]>();
  for (const failure of failures) {
    const what = failure.what.replace(/\d+ → \d+|call \d+: /, '').trim();
    const key = `${failure.behaviour}: ${failure.kind} ${what}`;
    groups.set(key, [...(groups.get(key) ?? []), failure]);
  }
  return [...groups]
    .sort(([, a], [, b]) => b.length - a.length)
    .slice(0, kinds)
    .map(([key, list]) => {
      const examples = list.slice(0, 2).map(({ seed, what }) => `    ${seed}: ${what}`);
      return [`${String(list.length).padStart(6)}  ${key}`, ...examples].join('\n');
    })
    .join('\n');
}
