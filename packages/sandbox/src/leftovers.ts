import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { findCgroups, listCgroups } from './cgroups.js';
import { defaultRoot } from './owner.js';

/** Folders and cgroups of providers of a process, in the default places: none while it holds no provider open. */
export function leftoverFolders(pid: number): string[] {
  const mine = (name: string): boolean => name.startsWith(`${pid}-`);
  const folders = (['sandbox', 'docker'] as const).flatMap((kind) => {
    const root = defaultRoot(kind);
    return existsSync(root)
      ? readdirSync(root)
          .filter(mine)
          .map((name) => join(root, name))
      : [];
  });
  const found = findCgroups();
  return [...folders, ...('layout' in found ? listCgroups(found.layout).filter(mine) : [])];
}
