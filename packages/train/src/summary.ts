import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { RunFolder } from '@treeward/base';
import type { TrainConfig } from './config.js';
import { mean, readMetrics } from './metrics.js';
import { pairedDifference, type PairedDifference } from './paired.js';
import { duration } from './progress.js';
import type { TrainOutcome } from './train-loop.js';

export interface Summary {
  run: string;
  steps: number;
  interrupted: boolean;
  rollouts: Record<string, number>;
  /** Held-out tasks, sampled: all of them and by harness. Null when they were not run twice. */
  heldOut: { all: PairedDifference; harness: Record<string, PairedDifference> } | null;
  reward: { firstStep: number; lastStep: number } | null;
  fidelity: { meanLogprobDifference: number; maxLogprobDifference: number; versionUnknown: number } | null;
  failures: Record<string, number>;
  seconds: {
    install: number | null;
    total: number;
    rollouts: number;
    recovery: number;
    update: number;
    evaluation: number;
  };
}

/** What bootstrap measured, when it ran in this start. */
function installSeconds(): number | null {
  const file = fileURLToPath(new URL('../../../.treeward-setup.json', import.meta.url));
  if (!existsSync(file)) return null;
  const report = JSON.parse(readFileSync(file, 'utf8')) as { totalSeconds?: number };
  return report.totalSeconds ?? null;
}

export function summarise(
  config: TrainConfig,
  run: RunFolder,
  outcome: TrainOutcome,
  started: number,
): Summary {
  const count = (
    key: (result: TrainOutcome['results'][number]) => string | undefined,
  ): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const result of outcome.results) {
      const name = key(result);
      if (name) counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  };
  const lines = existsSync(run.metrics) ? readMetrics(run.metrics) : [];
  const column = (name: string): number[] => lines.flatMap((line) => line[name] ?? []);
  const rewards = column('reward/all/mean');
  const differences = column('policy/logprob_diff_mean');
  return {
    run: run.root,
    steps: outcome.steps,
    interrupted: outcome.interrupted,
    rollouts: count((result) => result.harness),
    heldOut: heldOut(config, outcome),
    reward: rewards.length ? { firstStep: rewards[0]!, lastStep: rewards.at(-1)! } : null,
    fidelity: differences.length
      ? {
          meanLogprobDifference: mean(differences),
          maxLogprobDifference: Math.max(...column('policy/logprob_diff_max')),
          versionUnknown: column('off_policy/version_unknown').reduce((a, b) => a + b, 0),
        }
      : null,
    failures: count((result) => result.fault?.kind),
    seconds: { install: installSeconds(), total: (Date.now() - started) / 1000, ...outcome.time },
  };
}

function heldOut(config: TrainConfig, { before, after }: TrainOutcome): Summary['heldOut'] {
  if (!before || !after) return null;
  const pairs = before.entries.flatMap((entry, index) => {
    const later = after.entries[index]!;
    return entry.reward === null || later.reward === null
      ? []
      : [{ harness: entry.harness, before: entry.reward, after: later.reward }];
  });
  if (pairs.length === 0) return null;
  const compare = (chosen: typeof pairs): PairedDifference =>
    pairedDifference(
      chosen.map((pair) => pair.before),
      chosen.map((pair) => pair.after),
      config.run.seed,
    );
  const names = [...new Set(pairs.map((pair) => pair.harness))];
  return {
    all: compare(pairs),
    harness: Object.fromEntries(
      names.map((name) => [name, compare(pairs.filter((pair) => pair.harness === name))]),
    ),
  };
}

export function printSummary(summary: Summary): void {
  const say = (text: string): boolean => process.stdout.write(text + '\n');
  const fixed = (value: number): string => value.toFixed(3);
  say('');
  say(`${summary.interrupted ? 'Stopped' : 'Finished'} after ${summary.steps} steps`);
  say(
    `  rollouts     ${
      Object.entries(summary.rollouts)
        .map(([name, n]) => `${name} ${n}`)
        .join(', ') || 'none in this process'
    }`,
  );
  if (summary.heldOut) {
    const row = (name: string, d: PairedDifference): boolean =>
      say(
        `  held-out     ${name}: sampled reward ${fixed(d.before)} → ${fixed(d.after)}, ${d.difference >= 0 ? '+' : ''}${fixed(d.difference)} [${fixed(d.low)}, ${fixed(d.high)}] (${d.n} tasks, paired 95 %)`,
      );
    row('all', summary.heldOut.all);
    for (const [name, difference] of Object.entries(summary.heldOut.harness)) row(name, difference);
  }
  if (summary.reward)
    say(
      `  train reward first step ${fixed(summary.reward.firstStep)}, last step ${fixed(summary.reward.lastStep)}`,
    );
  if (summary.fidelity) {
    say(
      `  fidelity     |logp(learner) − logp(engine)| mean ${summary.fidelity.meanLogprobDifference.toExponential(2)}, max ${summary.fidelity.maxLogprobDifference.toExponential(2)}; calls without a version: ${summary.fidelity.versionUnknown}`,
    );
  }
  say(
    `  failures     ${
      Object.entries(summary.failures)
        .map(([kind, n]) => `${kind} ${n}`)
        .join(', ') || 'none'
    }`,
  );
  const { seconds } = summary;
  say(
    `  time         ${duration(seconds.total)}: rollouts ${duration(seconds.rollouts)}, recovery ${duration(seconds.recovery)}, update ${duration(seconds.update)}, evaluation ${duration(seconds.evaluation)}` +
      (seconds.install === null ? '' : `; set-up before it ${duration(seconds.install)}`),
  );
  say(`  run          ${summary.run}`);
  say(
    `  look         npx treeward recover ${summary.run} · tail ${summary.run}/metrics.jsonl · npx treeward train --resume --run-dir ${summary.run} --max-steps ${summary.steps + 10}`,
  );
}
