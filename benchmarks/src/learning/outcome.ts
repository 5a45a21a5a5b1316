import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, type BenchRow } from '@treeward/base';
import type { RunCost } from './run-one.js';
import type { Run } from './plan.js';

/** Of one metric, one number per step; steps where it was not measured are null. */
export type Curve = (number | null)[];

export interface PairedDifference {
  before: number;
  after: number;
  difference: number;
  low: number;
  high: number;
  n: number;
}

export interface RunOutcome {
  arm: string;
  seed: number;
  steps: number;
  heldOut: { all: PairedDifference; harness: Record<string, PairedDifference> } | null;
  curves: Record<string, Curve>;
  cost: RunCost;
}

/** What is drawn and committed of a run; everything else stays in its folder. */
export const CURVES = {
  reward: 'reward/all/mean',
  entropy: 'policy/entropy',
  kl: 'policy/approx_kl',
  gradientNorm: 'optim/grad_norm',
} as const;

/** Reads a finished run's folder. */
export function readOutcome(run: Run, folder: string, cost: RunCost): RunOutcome {
  const { steps, heldOut } = readJson<Pick<RunOutcome, 'steps' | 'heldOut'>>(join(folder, 'summary.json'));
  const file = join(folder, 'metrics.jsonl');
  const lines = existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Record<string, number>)
    : [];
  const curves = Object.fromEntries(
    Object.entries(CURVES).map(([name, metric]) => [name, lines.map((line) => line[metric] ?? null)]),
  );
  return { arm: run.arm.name, seed: run.seed, steps, heldOut, curves, cost };
}

/** Rows `learning/<arm>/gain[/seed]`: sampled held-out reward after minus before, paired over tasks; the mean over seeds on top. */
export function outcomeRows(outcomes: readonly RunOutcome[]): BenchRow[] {
  const arms = [...new Set(outcomes.map(({ arm }) => arm))];
  return arms.flatMap((arm) => {
    const runs = outcomes.flatMap((run) =>
      run.arm === arm && run.heldOut ? [{ ...run, all: run.heldOut.all }] : [],
    );
    if (runs.length === 0) return [];
    const row = { unit: 'reward', better: 'higher' } as const;
    const mean = runs.reduce((sum, { all }) => sum + all.difference, 0) / runs.length;
    const cpuHours = runs.reduce((sum, { cost }) => sum + cost.cpuSeconds, 0) / 3600;
    return [
      { ...row, name: `learning/${arm}/gain`, value: mean, n: runs.length, config: { cpuHours } },
      ...runs.map(({ seed, steps, all, cost }) => ({
        ...row,
        name: `learning/${arm}/gain/seed${seed}`,
        value: all.difference,
        interval: [all.low, all.high] as const,
        n: all.n,
        config: { before: all.before, after: all.after, steps, ...cost },
      })),
    ];
  });
}
