#!/usr/bin/env node
// Entry of `npm start`, `npm test`, `npm run treeward` and `npx treeward`. Needs Node alone: no package is imported before
// it has been installed. Usage: node tools/bootstrap.mjs <command> [arguments], see `help` below.
import { join } from 'node:path';
import { BootError, describeError } from './lib/errors.mjs';
import { targetCommand } from './lib/nx.mjs';
import { root } from './lib/paths.mjs';
import { forwardSignals, runInteractive } from './lib/run.mjs';
import { splitCommand } from './lib/split-command.mjs';
import { CORE_STEPS, HARNESS_STEPS, setup } from './setup.mjs';

const HELP = `node tools/bootstrap.mjs <command> [arguments]

  setup [--only STEP,…]   install and build what is missing, then stop
  start [flags…]          setup, then the main job: train one policy through the real harnesses (nx target train:mixed)
  treeward [arguments…]   setup without harness downloads, then the treeward command
  test [--full] [--only PART,…]
                          setup, then lint, typecheck, build, unit, integration and smoke tests
  ci-part PART            one part of the tests

Downloads go to $TREEWARD_CACHE (default ~/.cache/treeward); how long each step took to .treeward-setup.json.
Examples:
  npm start
  npm start -- --max-steps 4 --seed 3
  npm test -- --only lint,unit
  npx treeward doctor --json
`;

const allSteps = [...CORE_STEPS, ...HARNESS_STEPS];

/** A node program of this checkout, with our terminal and our signals. */
const node = (args, cwd = root) => runInteractive(process.execPath, args, { cwd });

/** Where the user stands: `npm run` moves to the root of the checkout first and says so in INIT_CWD. */
const callersFolder = () => (process.cwd() === root ? (process.env.INIT_CWD ?? root) : process.cwd());

const commands = {
  async setup(args) {
    const only = args[0] === '--only' ? (args[1] ?? '').split(',') : undefined;
    const unknown = (only ?? args).filter((name) => !allSteps.includes(name));
    if (unknown.length > 0) throw usage(`unknown: ${unknown.join(', ')}; steps are ${allSteps.join(', ')}`);
    const report = await setup({ only });
    process.stderr.write(`[setup] ready after ${report.totalSeconds} s\n`);
    return 0;
  },
  async start(args) {
    await setup();
    // Not through `nx run`: after Ctrl-C Nx drops the program's output and kills it 5 s later, in the middle of
    // saving. The command is the one of the Nx target, so that both do the same.
    const [command, ...given] = splitCommand(targetCommand(root, 'packages/train', 'mixed'));
    if (command !== 'node')
      throw new Error(`the command of train:mixed starts with ${command}, not with node`);
    return node([...given, ...args]);
  },
  async treeward(args) {
    await setup({ only: CORE_STEPS });
    return node([join(root, 'packages/train/dist/cli.js'), ...args], callersFolder());
  },
  async test(args) {
    const { runTests } = await import('./test.mjs');
    return runTests(args);
  },
  async 'ci-part'(args) {
    return commands.test(['--only', ...args]);
  },
  async help() {
    process.stdout.write(HELP);
    return 0;
  },
};

const usage = (message) =>
  new BootError('BOOT_E_USAGE', message, { hints: ['node tools/bootstrap.mjs help'] });

async function main([name = 'help', ...args]) {
  forwardSignals();
  const command = commands[name.replace(/^--?h(elp)?$/, 'help')];
  if (command === undefined) throw usage(`no command "${name}"`);
  return command(args);
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    process.stderr.write(`${describeError(error)}\n`);
    process.exitCode = error.code === 'BOOT_E_USAGE' ? 2 : error.code === 'BOOT_E_INTERRUPTED' ? 130 : 1;
  },
);
