import { join } from 'node:path';
import { BootError } from '../lib/errors.mjs';
import { withLock } from '../lib/lock.mjs';
import { onPath } from '../lib/paths.mjs';
import { pythonOffers } from '../lib/pip.mjs';
import { run } from '../lib/run.mjs';
import { libtensorflowReady } from './libtensorflow.mjs';

/** Commands Treeward starts, the Debian package that has each, and what for. `needed: false`: works without. */
const COMMANDS = [
  { command: 'bwrap', package: 'bubblewrap', needed: true, use: 'sandboxes' },
  { command: 'setpriv', package: 'util-linux', needed: true, use: 'sandboxes' },
  { command: 'g++', package: 'g++', needed: true, use: 'native addon, libtensorflow binding' },
  { command: 'make', package: 'make', needed: true, use: 'native addon' },
  { command: 'cmake', package: 'cmake', needed: true, use: 'native addon' },
  { command: 'python3', package: 'python3', needed: true, use: 'fetching libtensorflow, checkers of tasks' },
  { command: 'git', package: 'git', needed: false, use: 'code.diff in run folders' },
  { command: 'strace', package: 'strace', needed: false, use: 'watching what a harness does' },
];

/** What is not there. pip counts only while libtensorflow still has to be fetched. */
export function missingPackages(context) {
  const missing = COMMANDS.filter(({ command }) => onPath(command, context.env) === undefined);
  if (!libtensorflowReady(context) && pythonOffers(context.env) === 'none') {
    missing.push({ command: 'pip', package: 'python3-venv', needed: true, use: 'fetching libtensorflow' });
  }
  return missing;
}

const describe = (missing) => missing.map(({ command, use }) => `${command} (${use})`).join(', ');

/** Installs what is missing with apt as root; otherwise says exactly what to run, and stops if it is needed. */
export function systemPackages(context) {
  const { env, log, uid = process.getuid?.() } = context;
  return {
    id: 'system-packages',
    title: 'system packages',
    async run() {
      const missing = missingPackages(context);
      if (missing.length === 0) return { status: 'ready' };
      const names = [...new Set(missing.map((entry) => entry.package))];
      const canInstall = uid === 0 && onPath('apt-get', env) !== undefined;
      if (!canInstall) return refuse(missing, names);
      await aptInstall(context, names);
      const still = missingPackages(context).filter((entry) => entry.needed);
      if (still.length > 0) {
        throw new BootError(
          'BOOT_E_SYSTEM_PACKAGES',
          `still missing after apt-get install: ${describe(still)}`,
          { log },
        );
      }
      return { status: 'done', detail: names.join(', ') };
    },
  };
}

/** As root. Throws `BOOT_E_APT`. */
export async function aptInstall({ env, log, say, cache }, names) {
  say(`apt-get install ${names.join(' ')}`);
  const quiet = { ...env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (args, what) =>
    run('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=2', ...args], {
      env: quiet,
      log,
      what,
      fetches: true,
      code: 'BOOT_E_APT',
      hints: [`try by hand: apt-get update && apt-get install -y ${names.join(' ')}`],
    });
  await withLock(
    join(cache, 'locks/apt.lock'),
    async () => {
      await apt(['update'], `the package lists of apt (to install ${names.join(', ')})`);
      await apt(
        ['install', '-y', '--no-install-recommends', ...names],
        `the system packages ${names.join(', ')}`,
      );
    },
    { log: say },
  );
}

function refuse(missing, names) {
  const command = `sudo apt-get update && sudo apt-get install -y ${names.join(' ')}`;
  const needed = missing.filter((entry) => entry.needed);
  if (needed.length === 0)
    return { status: 'skipped', detail: `works without ${describe(missing)}; to add: ${command}` };
  throw new BootError('BOOT_E_SYSTEM_PACKAGES', `missing: ${describe(needed)}`, {
    hints: [`Debian, Ubuntu: ${command}`, 'elsewhere: install the same commands with your package manager'],
  });
}
