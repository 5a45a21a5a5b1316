import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command, Option } from 'commander';
import { readJson, RunFolder, TreewardError, writeJsonAtomic } from '@treeward/base';
import { loadConfig, parseConfig, type TrainConfig } from '../config.js';
import { environment } from '../environment.js';
import { describeMemory, learnerMemory } from '../learner-memory.js';
import { lockRun } from '../run-lock.js';
import { Progress } from '../progress.js';
import { Session } from '../session.js';
import { stopSignals } from '../stop-signals.js';
import { printSummary, summarise } from '../summary.js';
import { trainLoop } from '../train-loop.js';

interface TrainFlags {
  runDir?: string;
  resume?: boolean;
  maxSteps?: number;
  seed?: number;
  set: string[];
  dryRun?: boolean;
  json?: boolean;
}

const integer = (text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0)
    throw new TreewardError('CLI_E_NUMBER', `expected a whole number ≥ 0, got ${text}`);
  return value;
};

export function trainCommand(): Command {
  return new Command('train')
    .description('train a policy inside harnesses')
    .argument('[files...]', 'config files after an @: @ a.toml @ b.toml (later ones win)')
    .option('--run-dir <dir>', 'where the run lies (default: runs/<name>-<time>)')
    .option('--resume', 'continue the run in --run-dir, or the latest one of that name')
    .option('--max-steps <n>', 'stop after this many steps in all', integer)
    .option('--seed <n>', 'seed of tasks, sampling and shuffling', integer)
    .addOption(
      new Option('--set <key=value>', 'override one config key')
        .default([])
        .argParser((text: string, all: string[]) => [...all, text]),
    )
    .option('--dry-run', 'print the resolved config and the memory that the learner will need, and stop')
    .option('--json', 'print the summary as JSON')
    .addHelpText(
      'after',
      `
Examples:
  treeward train @ packages/train/configs/mixed.toml
  treeward train @ packages/train/configs/mixed.toml --max-steps 5 --seed 3 --run-dir runs/try
  treeward train --resume --run-dir runs/try
  treeward train @ packages/train/configs/mixed.toml --set algo.type=grpo --set rollouts.group-size=8 --dry-run`,
    )
    .action(async (files: string[], flags: TrainFlags) => {
      const { config, run } = resolveRun(files, flags);
      if (flags.dryRun) {
        process.stdout.write(JSON.stringify(config, null, 2) + '\n');
        process.stderr.write(describeMemory(await learnerMemory(config)) + '\n');
        return;
      }
      await train(config, run, flags);
    });
}

async function train(config: TrainConfig, run: RunFolder, flags: TrainFlags): Promise<void> {
  const progress = new Progress();
  mkdirSync(run.root, { recursive: true });
  const unlock = lockRun(run.root);
  const stop = stopSignals((text) => progress.line(text));
  const started = Date.now();
  try {
    const session = await Session.open(config, run);
    try {
      writeJsonAtomic(run.config, config);
      writeJsonAtomic(run.env, await environment());
      progress.line(`run ${run.root} · ready after ${((Date.now() - started) / 1000).toFixed(1)} s`);
      const outcome = await trainLoop(config, run, session, progress, stop);
      const summary = summarise(config, run, outcome, started);
      writeJsonAtomic(run.summary, summary);
      if (flags.json) process.stdout.write(JSON.stringify(summary) + '\n');
      else printSummary(summary);
      if (outcome.interrupted) process.exitCode = 1;
    } finally {
      await session.close();
    }
  } finally {
    stop.dispose();
    unlock();
  }
}

/** @throws TreewardError RUN_E_EXISTS, RUN_E_NOTHING, CLI_E_ARGUMENT, CONFIG_E_* */
function resolveRun(args: readonly string[], flags: TrainFlags): { config: TrainConfig; run: RunFolder } {
  const files = args.filter((word) => word !== '@');
  const stray = args.find((word, index) => word !== '@' && args[index - 1] !== '@');
  if (stray)
    throw new TreewardError('CLI_E_ARGUMENT', `unexpected argument ${stray}`, {
      hints: [`config files come after an @: treeward train @ ${stray}`],
    });
  const overrides = [...flags.set];
  if (flags.maxSteps !== undefined) overrides.push(`run.steps=${flags.maxSteps}`);
  if (flags.seed !== undefined) overrides.push(`run.seed=${flags.seed}`);
  const config = loadConfig(files, overrides);

  if (flags.resume) {
    const root = flags.runDir ?? config.run.dir ?? latestRun(config.run.name);
    if (!root || !existsSync(join(root, 'config.json'))) {
      throw new TreewardError(
        'RUN_E_NOTHING',
        `no run to resume${root ? ` in ${root}` : ` named ${config.run.name} under runs/`}`,
        { hints: ['name it: --run-dir runs/<name>'] },
      );
    }
    const run = new RunFolder(resolve(root));
    // The stored config is the run's; only its length may change.
    const stored = parseConfig(readJson(run.config), run.config);
    if (flags.set.length || flags.seed !== undefined)
      process.stderr.write('warning: --resume keeps the config of the run; --set and --seed are ignored\n');
    return {
      config:
        flags.maxSteps === undefined ? stored : { ...stored, run: { ...stored.run, steps: flags.maxSteps } },
      run,
    };
  }
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(':', '').replace('T', '-');
  const run = new RunFolder(
    resolve(flags.runDir ?? config.run.dir ?? join('runs', `${config.run.name}-${stamp}`)),
  );
  if (existsSync(run.checkpoints) && !flags.dryRun) {
    throw new TreewardError('RUN_E_EXISTS', `${run.root} already holds a run`, {
      hints: ['continue it with --resume', 'or choose another --run-dir'],
    });
  }
  return { config, run };
}

function latestRun(name: string): string | null {
  if (!existsSync('runs')) return null;
  const found = readdirSync('runs')
    .filter((entry) => entry === name || entry.startsWith(`${name}-`))
    .sort();
  return found.length ? join('runs', found.at(-1)!) : null;
}
