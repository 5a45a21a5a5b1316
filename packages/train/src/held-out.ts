import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, writeJsonAtomic, type RunFolder } from '@treeward/base';
import type { TrainConfig } from './config.js';
import { planHeldOut } from './plan-step.js';
import { duration, type Progress } from './progress.js';
import type { Session } from './session.js';

export interface HeldOutEntry {
  rolloutId: string;
  harness: string;
  family: string;
  /** Null when an infrastructure failure left no number. */
  reward: number | null;
}

export interface HeldOutResult {
  name: string;
  policyVersion: number;
  entries: HeldOutEntry[];
}

/** Sampled reward of the current policy on the held-out tasks; a finished evaluation is read, not run again. */
export async function evaluateHeldOut(
  name: string,
  config: TrainConfig,
  run: RunFolder,
  session: Session,
  progress: Progress,
  signal: AbortSignal,
): Promise<HeldOutResult | null> {
  if (config.eval.tasks === 0) return null;
  const file = join(run.root, 'eval', `${name}.json`);
  if (existsSync(file)) return readJson<HeldOutResult>(file);
  const { specs } = planHeldOut(config, run, name);
  const started = Date.now();
  let done = 0;
  const results = await session.pool.run(
    specs,
    () => {
      done++;
      const left = ((Date.now() - started) / 1000 / done) * (specs.length - done);
      progress.update(`held-out ${name}: ${done}/${specs.length} rollouts · ${duration(left)} left`);
    },
    { signal },
  );
  if (signal.aborted) return null;
  const entries = results.map((result, index) => ({
    rolloutId: result.rolloutId,
    harness: result.harness,
    family: specs[index]!.labels['family']!,
    reward: result.reward,
  }));
  const outcome: HeldOutResult = { name, policyVersion: session.policyVersion, entries };
  writeJsonAtomic(file, outcome);
  const known = entries.flatMap((entry) => (entry.reward === null ? [] : [entry.reward]));
  progress.line(
    `held-out ${name}: sampled reward ${(known.reduce((a, b) => a + b, 0) / known.length).toFixed(3)} over ${known.length} tasks`,
  );
  return outcome;
}
