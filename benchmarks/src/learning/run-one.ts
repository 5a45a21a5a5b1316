import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, openSync, closeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readJson, TreewardError, writeJsonAtomic } from '@treeward/base';
import { childrenCpuSeconds } from './cpu-seconds.js';
import type { Run } from './plan.js';

export interface RunCost {
  cpuSeconds: number;
  wallSeconds: number;
  /** Times it was started: 1 unless it was interrupted. */
  starts: number;
}

const cli = fileURLToPath(new URL('../../../packages/train/dist/cli.js', import.meta.url));
const workspace = fileURLToPath(new URL('../../../', import.meta.url));

/** Whether a run reached this step and was evaluated after it. */
export function isFinished(folder: string, steps: number): boolean {
  const file = join(folder, 'summary.json');
  if (!existsSync(file)) return false;
  const summary = readJson<{ interrupted: boolean; steps: number }>(file);
  return !summary.interrupted && summary.steps >= steps;
}

/**
 * The cold start on the held-out tasks is the same rollouts in every arm of a seed, token for token (192 of 192 rewards were equal
 * when two arms both ran them): what one arm measured, the next ones take.
 */
function shareColdStart(from: string | undefined, folder: string): void {
  const file = join('eval', 'before.json');
  if (!from || existsSync(folder) || !existsSync(join(from, file))) return;
  mkdirSync(join(folder, 'eval'), { recursive: true });
  copyFileSync(join(from, file), join(folder, file));
}

/**
 * Trains one arm with one seed by the ordinary command, continuing a run that was stopped or ended earlier. Its output goes to `<folder>.log`, what
 * it cost so far to `<folder>.cost.json`.
 * @param options.sameSeed folder of an earlier run with the same seed and tasks
 * @throws TreewardError BENCH_E_RUN when the command fails
 */
export async function runOne(
  run: Run,
  folder: string,
  options: {
    config: string;
    steps: number;
    set: readonly string[];
    signal: AbortSignal;
    sameSeed?: string | undefined;
  },
): Promise<RunCost> {
  mkdirSync(join(folder, '..'), { recursive: true });
  const costFile = `${folder}.cost.json`;
  const before = existsSync(costFile)
    ? readJson<RunCost>(costFile)
    : { cpuSeconds: 0, wallSeconds: 0, starts: 0 };
  if (isFinished(folder, options.steps)) return before;
  shareColdStart(options.sameSeed, folder);
  const arguments_ = [
    ...(existsSync(join(folder, 'checkpoints'))
      ? ['train', '--resume']
      : ['train', '@', options.config, '--seed', String(run.seed)].concat(
          [...run.arm.set, ...options.set].flatMap((text) => ['--set', text]),
        )),
    ...['--run-dir', folder, '--max-steps', String(options.steps)],
  ];
  const cpu = childrenCpuSeconds();
  const start = performance.now();
  const log = openSync(`${folder}.log`, 'a');
  const child = spawn(process.execPath, [cli, ...arguments_], {
    cwd: workspace,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  // The loop finishes its step and saves on SIGINT.
  const stop = (): boolean => child.kill('SIGINT');
  options.signal.addEventListener('abort', stop);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  options.signal.removeEventListener('abort', stop);
  const cost = {
    cpuSeconds: before.cpuSeconds + childrenCpuSeconds() - cpu,
    wallSeconds: before.wallSeconds + (performance.now() - start) / 1000,
    starts: before.starts + 1,
  };
  writeJsonAtomic(costFile, cost);
  if (code !== 0 && !options.signal.aborted)
    throw new TreewardError('BENCH_E_RUN', `${run.id} ended with ${code}`, {
      data: { folder, code },
      hints: [`read ${folder}.log`, 'the same command continues where it stopped'],
    });
  return cost;
}
