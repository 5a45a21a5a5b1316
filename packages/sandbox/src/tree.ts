import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  futimesSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  writeSync,
  type Stats,
} from 'node:fs';
import { chmod, mkdir, open, lchown, lutimes, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';

/**
 * Directory trees that somebody else may be changing while they are read. Directories are held open and entries are
 * reached as /proc/self/fd/N/name (openat in other words), so that a directory swapped for a link cannot lead
 * elsewhere. Names are bytes: a task may use any.
 */
const MAX_DEPTH = 128;
const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

export const at = (directory: number, name: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`/proc/self/fd/${directory}/`), name]);

export const openDirectory = (path: string | Buffer): number => openSync(path, DIRECTORY);

const GONE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ESTALE']);

/** The stat of an entry, or null when it is not (or no longer) there. */
export function statEntry(path: Buffer): Stats | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (error) {
    if (GONE.has((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

export const listNames = (directory: number): Buffer[] =>
  readdirSync(Buffer.from(`/proc/self/fd/${directory}`), { encoding: 'buffer' }).sort(Buffer.compare);

/** Where a link leads, as bytes; null when it is no longer there or no longer a link. */
export function readLink(path: Buffer): Buffer | null {
  try {
    return readlinkSync(path, { encoding: 'buffer' });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (GONE.has(code) || code === 'EINVAL') return null;
    throw error;
  }
}

/** Runs `work` with the directory open; undefined when it vanished or is no directory any more. */
export async function inDirectory<T>(path: Buffer, work: (fd: number) => Promise<T>): Promise<T | undefined> {
  let fd: number;
  try {
    fd = openDirectory(path);
  } catch (error) {
    if (GONE.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
  try {
    return await work(fd);
  } finally {
    closeSync(fd);
  }
}

/** Null when it vanished, was swapped for something else or may not be read. */
function openEntry(path: Buffer): number | null {
  try {
    return openSync(path, FILE);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (GONE.has(code) || code === 'EACCES' || code === 'ENXIO') return null;
    throw error;
  }
}

/** Pieces of a regular file; nothing when it vanished, was swapped for something else or may not be read. */
export async function* readEntry(path: Buffer): AsyncGenerator<Buffer> {
  const fd = openEntry(path);
  if (fd === null) return;
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return;
    // One byte more than it has, to see its end; a piece for each of many small files would keep the collector busy.
    const buffer = Buffer.allocUnsafe(Math.min(PIECE, stat.size + 1));
    for (let pieces = 0; ; pieces++) {
      const n = readSync(fd, buffer);
      if (n === 0) return;
      yield buffer.subarray(0, n);
      if (pieces % 16 === 15) await new Promise(setImmediate); // a large file must not stop everybody else
    }
  } finally {
    closeSync(fd);
  }
}

const PIECE = 256 * 1024;
const small = Buffer.allocUnsafeSlow(PIECE);

/**
 * sha256 of a regular file as hex; null when it vanished, was swapped for something else or may not be read. A file of
 * one piece, as most are, costs no turn of the event loop and no buffer of its own.
 */
export async function hashEntry(path: Buffer, size: number): Promise<string | null> {
  if (size < PIECE) {
    const n = readSmall(path);
    if (n === null) return null;
    if (n < PIECE) return createHash('sha256').update(small.subarray(0, n)).digest('hex');
  }
  const hash = createHash('sha256');
  let pieces = 0;
  for await (const piece of readEntry(path)) {
    hash.update(piece);
    pieces++;
  }
  return pieces === 0 && size > 0 ? null : hash.digest('hex');
}

/** Bytes read into `small`; PIECE when there may be more. */
function readSmall(path: Buffer): number | null {
  const fd = openEntry(path);
  if (fd === null) return null;
  try {
    if (!fstatSync(fd).isFile()) return null;
    let length = 0;
    for (;;) {
      const n = readSync(fd, small, length, PIECE - length, null);
      length += n;
      if (n === 0 || length === PIECE) return length;
    }
  } finally {
    closeSync(fd);
  }
}

/**
 * Copies a file of less than one piece without leaving the thread: most files are such, and six trips to another thread
 * cost more than the copy. Null when it has grown since it was looked at, with nothing written.
 */
function copySmall(from: Buffer, to: Buffer, stat: Stats, owner: CopyOptions['owner']): number | null {
  const length = readSmall(from) ?? 0;
  if (length === PIECE) return null;
  const fd = openSync(to, 'wx', 0o600);
  try {
    for (let at = 0; at < length;) at += writeSync(fd, small, at, length - at);
    if (owner) fchownSync(fd, owner.uid, owner.gid);
    fchmodSync(fd, stat.mode & 0o777);
    futimesSync(fd, stat.atime, stat.mtime);
  } finally {
    closeSync(fd);
  }
  return length;
}

export interface CopyOptions {
  /** New owner of everything; absent: the caller's. */
  owner?: { uid: number; gid: number } | undefined;
  /** Most bytes in all. A sparse file counts in full: it costs its author nothing and the copy everything. */
  maxBytes: number;
  /** What to do with fifos, sockets and devices: never copied. */
  special: 'skip' | 'refuse';
}

/**
 * Copies the contents of an open directory into an existing empty one: files, directories, links as links, permission
 * bits (no setuid), modification times. @returns bytes of all files
 * @throws TreewardError SANDBOX_E_TREE naming the path that is too large, too deep or (`refuse`) of a wrong kind
 */
export async function copyTree(source: number, target: string, options: CopyOptions): Promise<number> {
  let total = 0;
  let smallFiles = 0;
  const refuse = (path: string, why: string): TreewardError =>
    new TreewardError('SANDBOX_E_TREE', `cannot copy ${path}: ${why}`, { data: { path } });

  const copyDirectory = async (fd: number, into: Buffer, shown: string, depth: number): Promise<void> => {
    if (depth > MAX_DEPTH) throw refuse(shown, `more than ${MAX_DEPTH} directories deep`);
    for (const name of listNames(fd)) {
      const from = at(fd, name);
      const to = Buffer.concat([into, Buffer.from('/'), name]);
      const path = join(shown, name.toString());
      const stat = statEntry(from);
      if (!stat) continue;
      if (stat.isDirectory()) {
        await mkdir(to, { mode: 0o700 });
        await inDirectory(from, (child) => copyDirectory(child, to, path, depth + 1));
        if (options.owner) await lchown(to, options.owner.uid, options.owner.gid);
        await chmod(to, stat.mode & 0o777);
        await lutimes(to, stat.atime, stat.mtime);
      } else if (stat.isSymbolicLink()) {
        const leadsTo = readLink(from);
        if (!leadsTo) continue;
        await symlink(leadsTo, to);
        if (options.owner) await lchown(to, options.owner.uid, options.owner.gid);
      } else if (stat.isFile()) {
        if (total + stat.size > options.maxBytes)
          throw refuse(path, `more than ${options.maxBytes} bytes in all`);
        if (stat.size < PIECE) {
          const bytes = copySmall(from, to, stat, options.owner);
          if (bytes !== null) {
            total += bytes;
            if (++smallFiles % 64 === 0) await new Promise(setImmediate); // others want the thread too
            continue;
          }
        }
        const file = await open(to, 'wx', 0o600);
        try {
          for await (const piece of readEntry(from)) {
            total += piece.length;
            if (total > options.maxBytes) throw refuse(path, `more than ${options.maxBytes} bytes in all`);
            await file.writeFile(piece);
          }
          if (options.owner) await file.chown(options.owner.uid, options.owner.gid);
          await file.chmod(stat.mode & 0o777);
          await file.utimes(stat.atime, stat.mtime);
        } finally {
          await file.close();
        }
      } else if (options.special === 'refuse') {
        throw refuse(path, 'neither file, directory nor link');
      }
    }
  };
  await copyDirectory(source, Buffer.from(target), '', 0);
  return total;
}
