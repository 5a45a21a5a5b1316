import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Mount } from '@treeward/sandbox';
import { modulesOf } from './cache.js';

/**
 * The Node of the harnesses that are Node programs, whatever runs Treeward: OpenClaw needs 22.19 or newer, and only 22 and
 * newer can keep compiled code from one start to the next.
 */
export const NODE_PIN = '24.21.0';

const INSIDE = '/opt/harness/node';

/** Paths inside, for commands: the folder for `PATH`, and the binary. */
export const OWN_NODE = { bin: `${INSIDE}/bin`, argv0: `${INSIDE}/bin/node` };

/** Where sandboxes see it, or null when it is not installed. */
export function ownNodeMount(): Mount | null {
  const host = join(modulesOf('node', NODE_PIN), `node-${process.platform}-${process.arch}`);
  return existsSync(join(host, 'bin/node')) ? { host, inside: INSIDE } : null;
}
