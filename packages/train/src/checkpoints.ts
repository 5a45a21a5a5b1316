import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RunFolder } from '@treeward/base';
import type { TrainConfig } from './config.js';
import { readMetrics } from './metrics.js';

export interface Checkpoint {
  step: number;
  path: string;
  /** True when the step was committed but the process died before its metrics line was written. */
  metricsMissing(metricsFile: string): boolean;
}

const NAME = /^step_(\d{6})$/;

function steps(run: RunFolder): number[] {
  if (!existsSync(run.checkpoints)) return [];
  return readdirSync(run.checkpoints)
    .flatMap((name) => (NAME.test(name) ? [Number(NAME.exec(name)![1])] : []))
    .sort((a, b) => a - b);
}

/** The last finished step; step 0 (not yet written) in a fresh run. A checkpoint counts once it has its final name. */
export function latestCheckpoint(run: RunFolder): Checkpoint {
  const step = steps(run).at(-1) ?? 0;
  return {
    step,
    path: run.checkpoint(step),
    metricsMissing: (file) =>
      !existsSync(file) || !readMetrics(file).some((line) => line['progress/step'] === step),
  };
}

/** Bounds the disk: old checkpoints, sampler weights and, if asked for, rollouts of old steps. */
export function prune(run: RunFolder, keep: TrainConfig['checkpoint'], step: number): void {
  const kept = new Set(steps(run).slice(-keep.keep));
  for (const old of steps(run)) {
    if (kept.has(old) || old === 0 || (keep.keep_every > 0 && old % keep.keep_every === 0)) continue;
    rmSync(run.checkpoint(old), { recursive: true, force: true });
  }
  const weights = join(run.root, 'weights');
  for (const file of existsSync(weights) ? readdirSync(weights) : []) {
    const version = Number(/(\d+)\.gguf$/.exec(file)?.[1] ?? Infinity);
    if (version < step) rmSync(join(weights, file), { force: true });
  }
  if (keep.keep_rollouts_of_steps === 0 || !existsSync(run.rollouts)) return;
  for (const name of readdirSync(run.rollouts)) {
    const of = Number(/^s(\d{6})-/.exec(name)?.[1] ?? Infinity);
    if (of <= step - keep.keep_rollouts_of_steps)
      rmSync(join(run.rollouts, name), { recursive: true, force: true });
  }
}
