import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { childrenCpuSeconds } from './cpu-seconds.js';
import { lineChart } from './line-chart.js';
import { outcomeRows, readOutcome } from './outcome.js';
import { ARMS, planRuns } from './plan.js';
import { isFinished } from './run-one.js';
import { execFileSync } from 'node:child_process';

const cost = { cpuSeconds: 3600, wallSeconds: 1800, starts: 1 };
const paired = (difference: number): Record<string, number> => ({
  before: 0.4,
  after: 0.4 + difference,
  difference,
  low: difference - 0.1,
  high: difference + 0.1,
  n: 8,
});

function runFolder(difference: number, lines: readonly object[], interrupted = false): string {
  const folder = mkdtempSync(join(tmpdir(), 'learning-'));
  writeFileSync(
    join(folder, 'summary.json'),
    JSON.stringify({ steps: lines.length, interrupted, heldOut: { all: paired(difference), harness: {} } }),
  );
  writeFileSync(join(folder, 'metrics.jsonl'), lines.map((line) => JSON.stringify(line) + '\n').join(''));
  return folder;
}

it('plans whole seeds, each run with a folder of its own', () => {
  const runs = planRuns(ARMS, [0, 1]);
  expect(runs.slice(0, ARMS.length).every(({ seed }) => seed === 0)).toBe(true);
  expect(new Set(runs.map(({ id }) => id)).size).toBe(2 * ARMS.length);
});

describe('a finished run', () => {
  it('gives its curves; a step that did not measure something is a gap', () => {
    const folder = runFolder(0.2, [
      { 'reward/all/mean': 0.4, 'policy/approx_kl': 0.01 },
      { 'reward/all/mean': 0.5 },
    ]);
    const outcome = readOutcome({ arm: ARMS[0]!, seed: 3, id: 'x' }, folder, cost);
    expect(outcome).toMatchObject({ arm: 'rloo', seed: 3, steps: 2 });
    expect(outcome.curves).toMatchObject({ reward: [0.4, 0.5], kl: [0.01, null] });
    expect(isFinished(folder, 2)).toBe(true);
    expect(isFinished(folder, 3)).toBe(false); // it goes on where it ended
    expect(isFinished(runFolder(0.2, [], true), 0)).toBe(false);
    expect(isFinished(join(folder, 'nowhere'), 0)).toBe(false);
  });

  it('becomes a row of its seed, and the mean over seeds', () => {
    const outcomes = [0.2, 0.4].map((difference, seed) =>
      readOutcome({ arm: ARMS[0]!, seed, id: 'x' }, runFolder(difference, [{}]), cost),
    );
    const rows = outcomeRows(outcomes);
    expect(rows[0]).toMatchObject({ name: 'learning/rloo/gain', n: 2, config: { cpuHours: 2 } });
    expect(rows[0]!.value).toBeCloseTo(0.3);
    expect(rows[1]).toMatchObject({ name: 'learning/rloo/gain/seed0', value: 0.2, n: 8 });
    expect(rows[1]!.interval![0]).toBeCloseTo(0.1);
  });
});

it('draws one path per line, in pieces around a gap', () => {
  const svg = lineChart([
    { title: 'a < b', lines: [{ name: 'x', colour: '#123', values: [0, 1, null, 0.5, 0.25] }] },
  ]);
  expect(svg).toContain('a &lt; b');
  const path = /<path d="([^"]+)"/.exec(svg)![1]!;
  expect(path.match(/M/g)).toHaveLength(2);
  expect(path.match(/L/g)).toHaveLength(2);
  expect(svg).not.toContain('NaN');
});

it('counts the CPU time of children that ended', () => {
  const before = childrenCpuSeconds();
  execFileSync(process.execPath, [
    '-e',
    'const end = process.cpuUsage().user + 3e5; while (process.cpuUsage().user < end);',
  ]);
  expect(childrenCpuSeconds() - before).toBeGreaterThanOrEqual(0.25);
});
