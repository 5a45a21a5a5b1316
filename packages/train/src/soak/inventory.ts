import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { leftoverFolders } from '@treeward/sandbox';

/** What this process's rollouts hold of the machine now, by name; all of it must be gone when none runs. */
export function inventory(socketRoot: string): string[] {
  const mine = `/${process.pid}-`;
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes('treeward') && line.includes(mine));
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => commandLine(pid).includes(mine))
    .map((pid) => `process ${pid}`);
  const graders = readdirSync(tmpdir()).filter((name) => name.startsWith(`tw-grade-${process.pid}-`));
  const sockets = existsSync(socketRoot) ? readdirSync(socketRoot).map((name) => join(socketRoot, name)) : [];
  return [...mounts, ...processes, ...graders, ...sockets, ...leftoverFolders(process.pid)];
}

export const openFiles = (): number => readdirSync('/proc/self/fd').length;

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it ended while we looked
  }
}
