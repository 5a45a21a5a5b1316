import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { findCgroups, listCgroups } from '../cgroups.js';

/** Host pids whose command line contains the text, or is it (`exact`). Only looked at, never killed by it. */
export function processesWith(text: string, { exact = false } = {}): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
      return (exact ? command.trim() === text : command.includes(text)) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

/** What of a provider root is still on this host: folders and files below it, mounts, cgroups of its owners. */
export async function tracesOf(root: string, owners: readonly string[]): Promise<string[]> {
  const found = findCgroups();
  const groups = 'layout' in found ? listCgroups(found.layout) : [];
  return [
    ...(existsSync(root) ? readdirSync(root) : []),
    ...readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(root)),
    ...groups.filter((group) => owners.some((owner) => group.startsWith(owner))),
  ];
}
