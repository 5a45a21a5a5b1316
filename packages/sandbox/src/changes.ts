import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { at, inDirectory, listNames, readEntry, readLink, statEntry } from './tree.js';
import type { FileChange } from './types.js';

/** Larger files are recorded without a hash. */
export const HASH_LIMIT = 64 * 1024 * 1024;
const MAX_DEPTH = 128;

export interface ChangeSources {
  /** Open directories: the overlay's upper layer and the merged view. */
  upper: number;
  merged: number;
  /** Path of the lower layer: ours, and nobody changes it. */
  lower: string;
}

/**
 * What the overlay's upper layer says: a whiteout (character device 0:0) is a deletion, a directory that hides its
 * lower namesake is `opaque`. Node cannot read the extended attribute that marks the latter, so it is told by its
 * effect: a lower entry that neither the upper layer nor the merged view has. A file that was only touched is left out.
 */
export async function overlayChanges({ upper, merged, lower }: ChangeSources): Promise<FileChange[]> {
  const changes: FileChange[] = [];

  const hides = (names: readonly Buffer[], lowerFd: number, path: readonly Buffer[]): boolean => {
    const present = new Set(names.map((name) => name.toString('latin1')));
    const absent = listNames(lowerFd).find((name) => !present.has(name.toString('latin1')));
    return absent !== undefined && statEntry(at(merged, joinNames([...path, absent]))) === null;
  };

  /** lowerFd: the same directory below, or null where nothing of the lower layer shows through. */
  const walk = async (fd: number, lowerFd: number | null, path: readonly Buffer[]): Promise<void> => {
    const names = listNames(fd);
    for (const name of names) {
      const from = at(fd, name);
      const stat = statEntry(from);
      if (!stat) continue;
      const before = lowerFd === null ? null : statEntry(at(lowerFd, name));
      const here = [...path, name];
      const record = (kind: FileChange['kind'], more: Partial<FileChange> = {}): void => {
        changes.push({
          path: joinNames(here).toString('utf8'),
          kind,
          mode: stat.mode & 0o7777,
          size: stat.isFile() ? stat.size : 0,
          ...more,
        });
      };
      if (stat.isDirectory()) {
        if (here.length > MAX_DEPTH) {
          record('other');
          continue;
        }
        await inDirectory(from, async (child) => {
          const below = async (childLower: number | null): Promise<void> => {
            const opaque = childLower !== null && hides(listNames(child), childLower, here);
            if (!before?.isDirectory()) record('dir');
            else if (opaque) record('opaque');
            else if ((before.mode & 0o7777) !== (stat.mode & 0o7777)) record('dir');
            await walk(child, opaque ? null : childLower, here);
          };
          if (lowerFd !== null && before?.isDirectory()) await inDirectory(at(lowerFd, name), below);
          else await below(null);
        });
      } else if (stat.isCharacterDevice() && stat.rdev === 0) {
        record('delete', { mode: 0 });
      } else if (stat.isSymbolicLink()) {
        const target = readLink(from);
        if (!target) continue;
        const same = before?.isSymbolicLink() && readLink(at(lowerFd as number, name))?.equals(target);
        if (!same) record('symlink', { target: target.toString('utf8'), size: stat.size });
      } else if (stat.isFile()) {
        const sha256 = stat.size <= HASH_LIMIT ? await hashEntry(from) : undefined;
        if (sha256 !== undefined && before && sameShape(stat, before)) {
          if ((await hashEntry(at(lowerFd as number, name))) === sha256) continue;
        }
        record(before?.isFile() ? 'modify' : 'create', sha256 === undefined ? {} : { sha256 });
      } else {
        record('other');
      }
    }
  };

  await inDirectory(Buffer.from(lower), (lowerFd) => walk(upper, lowerFd, []));
  return changes;
}

const joinNames = (names: readonly Buffer[]): Buffer =>
  Buffer.concat(names.flatMap((name, i) => (i ? [Buffer.from('/'), name] : [name])));

const sameShape = (a: Stats, b: Stats): boolean =>
  b.isFile() && a.size === b.size && (a.mode & 0o7777) === (b.mode & 0o7777);

async function hashEntry(path: Buffer): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of readEntry(path)) hash.update(piece);
  return hash.digest('hex');
}
