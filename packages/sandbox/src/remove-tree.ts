import { readFileSync } from 'node:fs';
import { chmod, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';

/**
 * Removes a directory of ours. Refuses while anything is mounted below it: removing through a mount would delete what
 * is mounted.
 */
export async function removeTree(path: string): Promise<void> {
  const mounted = mountsBelow(path);
  if (mounted.length) {
    throw new TreewardError('SANDBOX_E_MOUNTED', `will not remove ${path}: ${mounted[0]} is mounted there`, {
      hints: [`umount ${mounted[0]}`],
    });
  }
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EPERM' && code !== 'ENOTEMPTY') throw error;
    await makeWritable(path); // a task may come with directories that nobody may write
    await rm(path, { recursive: true, force: true });
  }
}

async function makeWritable(directory: string): Promise<void> {
  await chmod(directory, 0o700);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) await makeWritable(join(directory, entry.name));
  }
}

/** Mount points at or below a path in the caller's mount namespace. */
export function mountsBelow(path: string): string[] {
  const unescape = (text: string): string =>
    text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => unescape(line.split(' ')[4] ?? ''))
    .filter((point) => point === path || point.startsWith(`${path}/`));
}
