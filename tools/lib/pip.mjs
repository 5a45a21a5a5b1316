import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { BootError } from './errors.mjs';
import { onPath } from './paths.mjs';
import { run } from './run.mjs';

const works = (command, args, env) => spawnSync(command, args, { env, stdio: 'ignore' }).status === 0;

/** What this machine's python offers: `pip`, `venv` (pip can be made from its own bundled copy), or `none`. */
export function pythonOffers(env = process.env) {
  if (onPath('python3', env) === undefined) return 'none';
  if (works('python3', ['-m', 'pip', '--version'], env)) return 'pip';
  return works('python3', ['-c', 'import ensurepip, venv'], env) ? 'venv' : 'none';
}

/**
 * The command line that starts pip. Without pip a throw-away virtual environment in `scratch` provides it.
 * Throws `BOOT_E_NO_PIP`.
 */
export async function pipCommand(scratch, { env, log }) {
  const offers = pythonOffers(env);
  if (offers === 'pip') return ['python3', '-m', 'pip'];
  if (offers === 'venv') {
    const folder = join(scratch, 'venv');
    await run('python3', ['-m', 'venv', folder], { env, log, what: 'a virtual environment for pip' });
    return [join(folder, 'bin/python'), '-m', 'pip'];
  }
  throw new BootError('BOOT_E_NO_PIP', 'python3 with pip (or venv) is needed to fetch libtensorflow', {
    hints: ['Debian, Ubuntu: sudo apt-get install -y python3 python3-venv', 'python is not used at run time'],
  });
}
