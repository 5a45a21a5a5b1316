#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { TreewardError } from '@treeward/base';
import { coldStartCommand } from './cli/cold-start-command.js';
import { doctorCommand } from './cli/doctor-command.js';
import { exportCommand } from './cli/export-command.js';
import { faultsCommand } from './cli/faults-command.js';
import { recordCommand } from './cli/record-command.js';
import { recoverCommand } from './cli/recover-command.js';
import { rolloutCommand } from './cli/rollout-command.js';
import { serveCommand } from './cli/serve-command.js';
import { soakCommand } from './cli/soak-command.js';
import { sweepCommand } from './cli/sweep-command.js';
import { trainCommand } from './cli/train-command.js';
import { evalCommand } from './eval/eval-command.js';
import { tasksCommand } from './eval/tasks-command.js';

/** Exit codes: 0 ok, 1 failure, 2 usage (bad flag, bad config, bad path). Results on stdout, progress on stderr. */
const USAGE = /^(CONFIG_E|TASK_E|CLI_E|HARNESS_E_UNKNOWN|RUN_E)/;

// `treeward … | head`: a reader that has seen enough is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

const program = new Command('treeward')
  .description('Reinforcement learning of a language-model policy inside agent harnesses it cannot see into.')
  .version('0.0.0')
  .exitOverride()
  .configureHelp({ sortSubcommands: true })
  .addCommand(doctorCommand())
  .addCommand(trainCommand())
  .addCommand(rolloutCommand())
  .addCommand(recoverCommand())
  .addCommand(recordCommand())
  .addCommand(serveCommand())
  .addCommand(evalCommand())
  .addCommand(tasksCommand())
  .addCommand(sweepCommand())
  .addCommand(faultsCommand())
  .addCommand(soakCommand())
  .addCommand(coldStartCommand())
  .addCommand(exportCommand());
for (const command of program.commands) {
  command.exitOverride();
  for (const sub of command.commands) sub.exitOverride();
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    report(error);
    process.exitCode = TreewardError.isInstance(error) && USAGE.test(error.code) ? 2 : 1;
  }
}

function report(error: unknown): void {
  if (process.argv.includes('--json') && TreewardError.isInstance(error)) {
    process.stdout.write(
      JSON.stringify({
        error: { code: error.code, message: error.message, hints: error.hints, data: error.data },
      }) + '\n',
    );
  }
  if (!TreewardError.isInstance(error)) {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return;
  }
  process.stderr.write(`error ${error.code}: ${error.message}\n`);
  for (const hint of error.hints) process.stderr.write(`  → ${hint}\n`);
}
