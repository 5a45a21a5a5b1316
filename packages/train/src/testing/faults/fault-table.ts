import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readRecord } from '@treeward/telemetry';
import type { RunFolder } from '@treeward/base';
import type { RolloutResult } from '@treeward/rollout';

export interface FaultRow {
  fault: string;
  /** Rollouts planned. */
  planned: number;
  /** Of them with the reward of the undisturbed run. */
  equal: number;
  /** Left without a reward, by kind: outside baseline and loss. */
  excluded: string;
  /** The policy's own, by code. */
  own: string;
  lost: number;
  twice: number;
  /** Reward 0 that the undisturbed run did not give and that is not the policy's own doing. */
  fakeZeros: number;
}

/** What became of every planned rollout, beside what it was worth undisturbed. */
export function judgeFaults(
  fault: string,
  planned: readonly string[],
  results: readonly RolloutResult[],
  undisturbed: ReadonlyMap<string, number | null>,
): FaultRow {
  const seen = new Map<string, number>();
  for (const { rolloutId } of results) seen.set(rolloutId, (seen.get(rolloutId) ?? 0) + 1);
  const tally = (values: readonly string[]): string =>
    [...new Set(values)]
      .map((value) => `${value}×${values.filter((other) => other === value).length}`)
      .join(' ') || '–';
  const isOwn = ({ fault: found }: RolloutResult): boolean =>
    found?.kind === 'policy' || found?.kind === 'timeout';
  return {
    fault,
    planned: planned.length,
    equal: results.filter(({ rolloutId, reward }) => reward !== null && reward === undisturbed.get(rolloutId))
      .length,
    excluded: tally(
      results.flatMap((result) => (result.reward === null ? [result.fault?.kind ?? 'none'] : [])),
    ),
    own: tally(results.flatMap((result) => (isOwn(result) ? [result.fault!.code] : []))),
    lost: planned.filter((id) => !seen.has(id)).length,
    twice: [...seen.values()].filter((times) => times > 1).length,
    fakeZeros: results.filter(
      (result) => result.reward === 0 && undisturbed.get(result.rolloutId) !== 0 && !isOwn(result),
    ).length,
  };
}

/** Records that are not one whole rollout: two starts, no end, two verdicts. */
export function brokenRecords(run: RunFolder, ids: readonly string[]): string[] {
  return ids.flatMap((id) => {
    const types = readRecord(run.rollout(id).root).events.map(({ type }) => type);
    const count = (type: string): number => types.filter((other) => other === type).length;
    const whole = count('rollout.start') === 1 && count('rollout.end') === 1 && count('verifier') <= 1;
    return whole ? [] : [`${id}: ${types.filter((type) => !type.startsWith('call.')).join(' ')}`];
  });
}

/** Prints the table and keeps it in test-results/faults.json. */
export function printFaults(rows: readonly FaultRow[]): void {
  const results = join(import.meta.dirname, '../../../../../test-results');
  mkdirSync(results, { recursive: true });
  writeFileSync(join(results, 'faults.json'), JSON.stringify({ rows }, null, 2) + '\n');
  const columns = ['fault', 'planned', 'equal', 'excluded', 'own', 'lost', 'twice', 'fakeZeros'] as const;
  const cells = [[...columns], ...rows.map((row) => columns.map((column) => String(row[column])))];
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index]!.length)));
  console.info(
    cells.map((row) => row.map((cell, index) => cell.padEnd(widths[index]!)).join('  ')).join('\n'),
  );
}
