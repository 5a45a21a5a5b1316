import type { Stats } from 'node:fs';
import { at, hashEntry, inDirectory, listNames, readLink, statEntry } from './tree.js';
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
    const present = new Set(names.map(latin1));
    const absent = listNames(lowerFd).find((name) => !present.has(latin1(name)));
    return absent !== undefined && statEntry(at(merged, joinNames([...path, absent]))) === null;
  };

  /** lowerFd: the same directory below, or null where nothing of the lower layer shows through. */
  const walk = async (fd: number, lowerFd: number | null, path: readonly Buffer[]): Promise<void> => {
    const names = listNames(fd);
    // Most of what is new has no namesake below: one listing is cheaper than a question for each.
    const below = new Set(lowerFd === null || !names.length ? [] : listNames(lowerFd).map(latin1));
    for (const name of names) {
      const from = at(fd, name);
      const stat = statEntry(from);
      if (!stat) continue;
      const before = lowerFd !== null && below.has(latin1(name)) ? statEntry(at(lowerFd, name)) : null;
      const here = [...path, name];
      const record = (kind: FileChange['kind'], mode = stat.mode & 0o7777): void => {
        changes.push({ path: joinNames(here).toString('utf8'), kind, mode, size: 0 });
      };
      if (stat.isDirectory()) {
        if (here.length > MAX_DEPTH) {
          record('other');
          continue;
        }
        await inDirectory(from, async (child) => {
          const descend = async (childLower: number | null): Promise<void> => {
            const opaque = childLower !== null && hides(listNames(child), childLower, here);
            if (!before?.isDirectory()) record('dir');
            else if (opaque) record('opaque');
            else if ((before.mode & 0o7777) !== (stat.mode & 0o7777)) record('dir');
            await walk(child, opaque ? null : childLower, here);
          };
          if (lowerFd !== null && before?.isDirectory()) await inDirectory(at(lowerFd, name), descend);
          else await descend(null);
        });
      } else if (stat.isCharacterDevice() && stat.rdev === 0) {
        record('delete', 0);
      } else {
        const change = await entryChange(from, stat, before, before && at(lowerFd as number, name));
        if (change) changes.push({ path: joinNames(here).toString('utf8'), ...change });
      }
    }
  };

  await inDirectory(Buffer.from(lower), (lowerFd) => walk(upper, lowerFd, []));
  return changes;
}

/** The same records from two complete trees, for where there is no overlay. A replaced directory shows by its files. */
export async function plainChanges(current: number, lower: string): Promise<FileChange[]> {
  const changes: FileChange[] = [];
  const walk = async (fd: number, lowerFd: number | null, path: readonly Buffer[]): Promise<void> => {
    const now = listNames(fd);
    const seen = new Set(now.map(latin1));
    for (const name of lowerFd === null ? [] : listNames(lowerFd)) {
      if (seen.has(latin1(name))) continue;
      changes.push({ path: joinNames([...path, name]).toString('utf8'), kind: 'delete', mode: 0, size: 0 });
    }
    for (const name of now) {
      const from = at(fd, name);
      const stat = statEntry(from);
      if (!stat) continue;
      const before = lowerFd === null ? null : statEntry(at(lowerFd, name));
      const here = [...path, name];
      if (!stat.isDirectory() || here.length > MAX_DEPTH) {
        const change = await entryChange(from, stat, before, before && at(lowerFd as number, name));
        if (change) changes.push({ path: joinNames(here).toString('utf8'), ...change });
        continue;
      }
      if (!before?.isDirectory() || (before.mode & 0o7777) !== (stat.mode & 0o7777)) {
        changes.push({
          path: joinNames(here).toString('utf8'),
          kind: 'dir',
          mode: stat.mode & 0o7777,
          size: 0,
        });
      }
      await inDirectory(from, async (child) => {
        if (lowerFd === null || !before?.isDirectory()) return walk(child, null, here);
        return inDirectory(at(lowerFd, name), (childLower) => walk(child, childLower, here));
      });
    }
  };
  await inDirectory(Buffer.from(lower), (lowerFd) => walk(current, lowerFd, []));
  return changes;
}

/** What became of anything but a directory; null when it is as it was. */
async function entryChange(
  from: Buffer,
  stat: Stats,
  before: Stats | null,
  beforePath: Buffer | null,
): Promise<Omit<FileChange, 'path'> | null> {
  const mode = stat.mode & 0o7777;
  if (stat.isSymbolicLink()) {
    const target = readLink(from);
    if (!target || (beforePath && before?.isSymbolicLink() && readLink(beforePath)?.equals(target)))
      return null;
    return { kind: 'symlink', mode, size: stat.size, target: target.toString('utf8') };
  }
  if (!stat.isFile()) return { kind: 'other', mode, size: 0 };
  const sha256 = stat.size <= HASH_LIMIT ? await hashEntry(from, stat.size) : null;
  if (sha256 !== null && beforePath && before && sameShape(stat, before)) {
    if ((await hashEntry(beforePath, before.size)) === sha256) return null;
  }
  const kind = before?.isFile() ? 'modify' : 'create';
  return { kind, mode, size: stat.size, ...(sha256 === null ? {} : { sha256 }) };
}

const latin1 = (name: Buffer): string => name.toString('latin1');

const joinNames = (names: readonly Buffer[]): Buffer =>
  Buffer.concat(names.flatMap((name, i) => (i ? [Buffer.from('/'), name] : [name])));

const sameShape = (a: Stats, b: Stats): boolean =>
  b.isFile() && a.size === b.size && (a.mode & 0o7777) === (b.mode & 0o7777);
