import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { agentBinary } from './agent-binary.js';

const exec = promisify(execFile);

/**
 * Makes a sandbox's workspace (init/mounts.c) where the whole host sees it, for a daemon that can bind only that.
 * @param options bytes of disk, and the uid that may write to it
 */
export async function mountWorkspace(
  directory: string,
  { lower, disk, uid: owner }: { lower: string; disk: number; uid: number },
): Promise<void> {
  const uid = String(owner);
  const options = { dir: directory, lower, disk: String(disk), inodes: '200k', uid, gid: uid };
  await exec(agentBinary(), [
    'mount',
    ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
  ]);
}

/** In the order given; what is not mounted is passed over. */
export async function unmount(paths: readonly string[]): Promise<void> {
  if (paths.length) await exec(agentBinary(), ['unmount', ...paths]);
}
