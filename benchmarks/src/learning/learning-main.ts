/**
 * Does training inside real CLIs raise the reward on held-out tasks, and is it the reward that does it? Several seeds of each arm
 * (plan.ts) by the ordinary `treeward train`, one after the other; paired intervals over tasks; curves as data and picture.
 * A stopped experiment continues with the same command; `--detach` leaves it running on its own.
 */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { benchMachine, readJson, TreewardError, writeFileAtomic, writeJsonAtomic } from '@treeward/base';
import { lineChart, type Panel } from './line-chart.js';
import { CURVES, outcomeRows, readOutcome, type RunOutcome } from './outcome.js';
import { ARMS, planRuns, type Arm } from './plan.js';
import { isFinished, runOne, type RunCost } from './run-one.js';

const COLOURS = ['#1b6ca8', '#d1495b', '#777777', '#3a7d44', '#8e5ea2'];

interface Flags {
  config: string;
  arms: string;
  seeds: string;
  steps: number;
  runs: string;
  cpuHours: number;
  set: string[];
  out?: string;
  quick?: boolean;
  detach?: boolean;
}

const flags = new Command('learning')
  .description('held-out reward before and after training, by arm and seed, on real CLIs')
  .option('--config <file>', 'the mix', 'packages/train/configs/fast.toml')
  .option('--arms <names>', `of ${ARMS.map(({ name }) => name).join(', ')}`, 'rloo,ppo-history,shuffled')
  .option('--seeds <list>', 'whole numbers', '0,1,2')
  .option(
    '--steps <n>',
    'training steps of each run, up to eight optimiser steps each; one that ended earlier goes on',
    Number,
    25,
  )
  .option('--runs <dir>', 'where the runs lie; finished ones are not run again', 'runs/learning')
  .option('--cpu-hours <n>', 'no further run is started once this much CPU time is spent', Number, 20)
  .option(
    '--set <key=value>',
    'override a config key in every run',
    (text, all: string[]) => [...all, text],
    [],
  )
  .option('--out <file>', 'rows and curves as JSON; a picture beside it as .svg')
  .option('--quick', 'one seed, two steps, four held-out tasks: does the way hold?')
  .option('--detach', 'go on in the background; output in <runs>/learning.log')
  .addHelpText(
    'after',
    `
Examples:
  nx run benchmarks:learning -- --detach --out benchmarks/results/learning.json
  nx run benchmarks:learning -- --arms rloo --seeds 0 --steps 35 --runs runs/stability --out benchmarks/results/stability.json`,
  )
  .parse()
  .opts<Flags>();

if (flags.detach) detach();
else await main();

function detach(): void {
  mkdirSync(flags.runs, { recursive: true });
  const log = openSync(join(flags.runs, 'learning.log'), 'a');
  const child = spawn(
    process.execPath,
    [fileURLToPath(import.meta.url), ...process.argv.slice(2).filter((word) => word !== '--detach')],
    { detached: true, stdio: ['ignore', log, log] },
  );
  closeSync(log);
  child.unref();
  process.stdout.write(
    `running as process ${child.pid}; follow ${flags.runs}/learning.log; kill -INT ${child.pid} stops it after the step\n`,
  );
}

async function main(): Promise<void> {
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  process.once('SIGTERM', () => stop.abort());
  const runs = planRuns(chosenArms(), flags.quick ? [0] : seedsOf(flags.seeds));
  const quick = flags.quick ? ['eval.tasks=4', 'rollouts.groups={ claude-code = 1, pi = 1 }'] : [];
  const steps = flags.quick ? 2 : flags.steps;
  const outcomes: RunOutcome[] = [];
  for (const run of runs) {
    const folder = resolve(flags.runs, run.id);
    const spent = runs
      .map(({ id }) => resolve(flags.runs, `${id}.cost.json`))
      .reduce((sum, file) => sum + (existsSync(file) ? readJson<RunCost>(file).cpuSeconds : 0), 0);
    if (!isFinished(folder, steps) && spent / 3600 >= flags.cpuHours) {
      process.stdout.write(
        `${(spent / 3600).toFixed(1)} CPU-hours spent of ${flags.cpuHours}: stopped before ${run.id}\n`,
      );
      break;
    }
    process.stdout.write(`${run.id}: ${isFinished(folder, steps) ? 'finished before' : folder}\n`);
    const earlier = runs.slice(0, runs.indexOf(run)).find(({ seed }) => seed === run.seed);
    const cost = await runOne(run, folder, {
      sameSeed: earlier && resolve(flags.runs, earlier.id),
      config: flags.config,
      steps,
      set: [...quick, ...flags.set],
      signal: stop.signal,
    });
    if (stop.signal.aborted) break;
    const outcome = readOutcome(run, folder, cost);
    outcomes.push(outcome);
    print(outcome);
    if (flags.out) write(flags.out, outcomes);
  }
  if (stop.signal.aborted) {
    process.stdout.write('stopped; the same command continues\n');
    process.exitCode = 1;
  }
}

/** @throws TreewardError BENCH_E_ARM */
function chosenArms(): Arm[] {
  return flags.arms.split(',').map((name) => {
    const arm = ARMS.find((known) => known.name === name);
    if (!arm)
      throw new TreewardError('BENCH_E_ARM', `no arm is called ${name}`, {
        hints: [`there are ${ARMS.map(({ name: known }) => known).join(', ')}`],
      });
    return arm;
  });
}

/** @throws TreewardError BENCH_E_SEED */
function seedsOf(text: string): number[] {
  return text.split(',').map((word) => {
    const seed = Number(word);
    if (word.trim() === '' || !Number.isInteger(seed))
      throw new TreewardError('BENCH_E_SEED', `--seeds ${text}: ${word} is not a whole number`);
    return seed;
  });
}

function print({ arm, seed, steps, heldOut, cost }: RunOutcome): void {
  const what = heldOut
    ? `held-out ${heldOut.all.before.toFixed(3)} → ${heldOut.all.after.toFixed(3)}, ${heldOut.all.difference.toFixed(3)} [${heldOut.all.low.toFixed(3)}, ${heldOut.all.high.toFixed(3)}] (${heldOut.all.n} tasks)`
    : 'no held-out evaluation';
  process.stdout.write(
    `${arm} seed ${seed}: ${steps} steps, ${what}; ${(cost.cpuSeconds / 3600).toFixed(2)} CPU-h, ${(cost.wallSeconds / 60).toFixed(0)} min\n`,
  );
}

function write(out: string, outcomes: readonly RunOutcome[]): void {
  const arms = [...new Set(outcomes.map(({ arm }) => arm))];
  const seeds = [...new Set(outcomes.map(({ seed }) => seed))];
  writeJsonAtomic(out, {
    schema: 1,
    machine: benchMachine(),
    seeds,
    rows: outcomeRows(outcomes),
    curves: outcomes.map(({ arm, seed, curves }) => ({ arm, seed, ...curves })),
  });
  const panels = Object.keys(CURVES).map((name): Panel => ({
    title: {
      reward: 'training reward, sampled, fresh tasks',
      entropy: 'entropy, nats per token',
      kl: 'approx. KL of an update',
      gradientNorm: 'gradient norm before clipping',
    }[name]!,
    lines: outcomes.map(({ arm, seed, curves }) => ({
      name: arms.length > 1 ? arm : `${arm}, seed ${seed}`,
      colour: COLOURS[(arms.length > 1 ? arms.indexOf(arm) : seeds.indexOf(seed)) % COLOURS.length]!,
      values: curves[name]!,
    })),
  }));
  writeFileAtomic(out.replace(/(\.json)?$/, '.svg'), lineChart(panels));
}
