import { existsSync, readdirSync, readFileSync } from 'node:fs';

const commandLine = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return ''; // it ended while we looked
  }
};

/** Live processes whose command line holds all of `words`. */
export function processesWith(...words: string[]): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => words.every((word) => commandLine(pid).includes(word)))
    .map(Number);
}

function cgroupsWith(word: string, under = '/sys/fs/cgroup'): string[] {
  if (!existsSync(under)) return [];
  return readdirSync(under, { withFileTypes: true }).flatMap((controller) => {
    const parent = `${under}/${controller.name}/treeward`;
    if (!controller.isDirectory() || !existsSync(parent)) return [];
    return readdirSync(parent).filter((name) => name.includes(word));
  });
}

/** What a run may never leave on the machine, by a word that all its sandboxes' ids hold. */
export function leftovers(word: string): string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(word));
  return [...mounts, ...cgroupsWith(word), ...processesWith('bwrap', word).map((pid) => `process ${pid}`)];
}
