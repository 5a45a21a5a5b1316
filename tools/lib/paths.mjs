import { accessSync, constants, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BootError } from './errors.mjs';

/** The checkout this file lies in. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** Where downloads live, outside the checkout: `$TREEWARD_CACHE`, `$XDG_CACHE_HOME/treeward` or `~/.cache/treeward`. */
export function cacheRoot(env = process.env) {
  if (env.TREEWARD_CACHE) return resolve(env.TREEWARD_CACHE);
  if (env.XDG_CACHE_HOME) return join(resolve(env.XDG_CACHE_HOME), 'treeward');
  return join(env.HOME || homedir(), '.cache', 'treeward');
}

/** Makes the folder and checks that it can be written. Throws `BOOT_E_NOT_WRITABLE`. */
export function writableFolder(folder) {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new BootError('BOOT_E_NOT_WRITABLE', `cannot write to ${folder} (${cause.code ?? cause.message})`, {
      hints: [
        'set TREEWARD_CACHE to a folder of your own with about 2 GB free',
        `or give yourself rights on ${folder}`,
      ],
      cause,
    });
  }
  return folder;
}

/** First match of a command on PATH, or undefined. A scan, no process: checking a dozen tools takes a millisecond. */
export function onPath(command, env = process.env) {
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    if (folder === '') continue;
    const file = join(folder, command);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // not here: look in the next folder
    }
  }
  return undefined;
}
