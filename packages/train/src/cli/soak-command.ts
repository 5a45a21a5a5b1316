import { spawn } from 'node:child_process';
import { mkdirSync, openSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { RunFolder } from '@treeward/base';
import { adapterByName, requireInstalled } from '@treeward/harness-adapters';
import { checkpointFolder } from '../checkpoint-folder.js';
import { templateOf } from '../engine-spec.js';
import { duration, Progress } from '../progress.js';
import { soak, type SoakReport } from '../soak/soak.js';
import { numberFlag } from './number-flag.js';
import { providerFlag, providerOption } from './provider-flag.js';

interface SoakFlags {
  out: string;
  rollouts: string;
  harness: string[];
  concurrency: string;
  seed: string;
  wallSeconds: string;
  provider: string;
  checkpoint: string;
  detach?: boolean;
  json?: boolean;
}

export function soakCommand(): Command {
  return new Command('soak')
    .description('many rollouts with a scripted policy: what leaks, what fails, what each costs')
    .requiredOption('--out <dir>', 'run folder; started again, it goes on where it was')
    .option('--rollouts <n>', 'how many', '200')
    .option('--harness <names...>', 'one or more, each as name or name=share', ['agent-loop'])
    .option('--concurrency <n>', 'in flight at once, memory permitting', '6')
    .option('--seed <text>', 'seed of tasks and scripts', '0')
    .option('--wall-seconds <s>', 'wall clock of one rollout', '240')
    .addOption(providerOption())
    .option('--checkpoint <dir>', 'its tokenizer is what counts', 'datasets/cold-start')
    .option('--detach', 'run on in the background; its output goes to <out>/soak.log')
    .option('--json', 'print the report as JSON')
    .action(async (flags: SoakFlags) => {
      const run = new RunFolder(resolve(flags.out));
      if (flags.detach) return detach(run);
      const harnesses = sharesOf(flags.harness);
      for (const name of Object.keys(harnesses)) await requireInstalled(adapterByName(name));
      const rollouts = numberFlag('--rollouts', flags.rollouts, { min: 1, integer: true });
      const progress = new Progress();
      const started = Date.now();
      const stop = new AbortController();
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
      const report = await soak(run, {
        rollouts,
        harnesses,
        seed: flags.seed,
        wallMs: numberFlag('--wall-seconds', flags.wallSeconds, { min: 1 }) * 1000,
        concurrency: numberFlag('--concurrency', flags.concurrency, { min: 1, integer: true }),
        template: templateOf('compact', await checkpointFolder(flags.checkpoint, '--checkpoint')),
        sandboxes: await providerFlag(flags.provider),
        signal: stop.signal,
        onDone: ({ rolloutId, fault }, done) => {
          if (fault) progress.line(`${rolloutId}: ${fault.code} ${fault.message.slice(0, 200)}`);
          const left = ((Date.now() - started) / 1000 / done) * (rollouts - done);
          progress.update(`soak ${done}/${rollouts} · ${duration(left)} left`);
        },
      });
      if (stop.signal.aborted) {
        process.stderr.write('stopped; the same command goes on\n');
        process.exitCode = 130;
        return;
      }
      process.stdout.write(flags.json ? JSON.stringify(report) + '\n' : describe(report));
      if (report.leaks.length || report.counters.leaked) process.exitCode = 1;
    });
}

/** The same command without the flag, in a session of its own. */
function detach(run: RunFolder): void {
  mkdirSync(run.root, { recursive: true });
  const log = openSync(join(run.root, 'soak.log'), 'a');
  const args = process.argv.slice(1).filter((word) => word !== '--detach');
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', log, log] });
  child.unref();
  process.stdout.write(`process ${child.pid}, output in ${join(run.root, 'soak.log')}\n`);
}

function sharesOf(words: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    words.map((word) => {
      const [name, share = '1'] = word.split('=') as [string, string?];
      return [name, numberFlag('--harness', share, { min: 1, integer: true })];
    }),
  );
}

function describe(report: SoakReport): string {
  const { counters, cpuMs } = report;
  const ms = (value: number): string => `${value.toFixed(1)} ms`;
  return [
    `${report.rollouts} rollouts (${report.found} found) in ${duration(report.seconds)}, ${report.perSecond.toFixed(2)} per second`,
    `at once: ${report.atOnce} of ${report.concurrency}; memory available ${report.availableMiB.before} MiB before, ${report.availableMiB.least} MiB at least`,
    `rewards: ${report.rewards.known} known, mean ${report.rewards.mean.toFixed(3)}; faults: ${JSON.stringify(report.faults)}`,
    `sandboxes: ${JSON.stringify(counters)}; create p50 ${ms(report.createMs.p50)}, p90 ${ms(report.createMs.p90)}`,
    `left behind: ${report.leaks.length ? report.leaks.join(', ') : 'nothing'}; open files ${report.openFiles.join(' → ')}; resident MiB ${report.residentMiB.join(' → ')}`,
    ...(cpuMs
      ? [
          `CPU per rollout: ${Object.entries(cpuMs)
            .map(([name, value]) => `${name} ${value === null ? 'not seen' : ms(value)}`)
            .join(', ')}`,
        ]
      : []),
    '',
  ].join('\n');
}
