import { lstatSync, readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import type { TaskFile } from '../types.js';

/** Every regular file below `root`, as files of a task, in order of their names. Links and devices are left out. */
export function filesBelow(root: string, prefix = ''): TaskFile[] {
  const walk = (at: string): string[] =>
    readdirSync(at)
      .sort()
      .flatMap((name) => {
        const path = join(at, name);
        const stat = lstatSync(path);
        if (stat.isDirectory()) return walk(path);
        return stat.isFile() ? [path] : [];
      });
  return walk(root).map((from) => ({
    path: prefix + relative(root, from).split(sep).join('/'),
    content: { from },
  }));
}
