import { realpathSync } from 'node:fs';
import type { Mount } from './types.js';

/** The running node binary for use inside: pass `mount` in the sandbox's mounts and start commands with `argv0`. */
export function nodeMount(): { mount: Mount; argv0: string } {
  const argv0 = '/opt/treeward/node/bin/node';
  return { mount: { host: realpathSync(process.execPath), inside: argv0 }, argv0 };
}
