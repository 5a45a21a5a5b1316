import { createHash, randomUUID } from 'node:crypto';
import { closeSync, constants, lstatSync, mkdirSync, openSync } from 'node:fs';
import { chmod, lchown, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import { removeTree } from './remove-tree.js';
import { at, copyTree, inDirectory, listNames, statEntry, type CopyOptions } from './tree.js';
import type { Snapshot } from './types.js';

const KEPT_UNUSED = 32;
const SNAPSHOT = 'snapshot-';
const MAX_BYTES = 4 * 1024 * 1024 * 1024;

export interface Lower {
  path: string;
  bytes: number;
  release(): void;
}

export interface LowerOptions {
  /** Who owns the copy; absent: the caller. */
  owner: CopyOptions['owner'];
  /** Paths where a mount will stand: whatever is there is left out, and an empty directory made. */
  covered?: readonly string[];
}

interface Entry {
  ready: Promise<{ path: string; bytes: number }>;
  users: number;
}

/**
 * Read-only layers for workspaces. The source is copied once, owned by the sandbox uid: in the source itself the files
 * are often root's, and what root owns the task could not change. Rollouts of one task share the copy.
 */
export class LowerCache {
  readonly #directory: string;
  readonly #entries = new Map<string, Entry>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /**
   * @throws TreewardError SANDBOX_E_OPTIONS when it is no directory or no snapshot of ours, SANDBOX_E_TREE when it holds
   * devices
   */
  async acquire(source: string | Snapshot | undefined, options: LowerOptions): Promise<Lower> {
    const { owner, covered = [] } = options;
    if (typeof source === 'object') {
      const entry = this.#snapshot(source);
      if (!covered.length) return this.#hold(entry);
      source = (await entry.ready).path;
    }
    const content = source === undefined ? 'empty' : await fingerprint(source);
    const key = [content, owner?.uid ?? 'own', ...covered.map((path) => path.replaceAll('/', '+'))].join('-');
    return this.#hold(this.#entries.get(key) ?? this.#add(key, copier(source, options), owner));
  }

  /** Keeps what `copy` makes in an empty directory. */
  async adopt(copy: Copier, owner: CopyOptions['owner']): Promise<Snapshot> {
    const id = `${SNAPSHOT}${randomUUID()}`;
    const { bytes, release } = await this.#hold(this.#add(id, copy, owner));
    return { id, bytes, release };
  }

  #add(key: string, copy: Copier, owner: CopyOptions['owner']): Entry {
    const entry = { users: 0, ready: this.#make(copy, join(this.#directory, key), owner) };
    this.#entries.set(key, entry);
    entry.ready.catch(() => this.#entries.delete(key));
    return entry;
  }

  #snapshot({ id }: Snapshot): Entry {
    const entry = this.#entries.get(id);
    if (entry && entry.users > 0) return entry;
    throw new TreewardError('SANDBOX_E_OPTIONS', `workspaceFrom ${id}: released, or another provider's`, {
      data: { field: 'workspaceFrom' },
    });
  }

  async #hold(entry: Entry): Promise<Lower> {
    entry.users++;
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      entry.users--;
      this.#evict();
    };
    try {
      return { ...(await entry.ready), release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #make(
    copy: Copier,
    target: string,
    owner: CopyOptions['owner'],
  ): Promise<{ path: string; bytes: number }> {
    const temporary = `${target}.tmp`;
    await removeTree(temporary);
    mkdirSync(temporary, { mode: 0o755 });
    let bytes: number;
    try {
      bytes = await copy(temporary);
    } catch (error) {
      await removeTree(temporary);
      throw error;
    }
    if (owner) await lchown(temporary, owner.uid, owner.gid);
    await chmod(temporary, 0o755);
    await rename(temporary, target);
    return { path: target, bytes };
  }

  #evict(): void {
    const unused = [...this.#entries].filter(([, entry]) => entry.users === 0);
    const tasks = unused.filter(([key]) => !key.startsWith(SNAPSHOT));
    const doomed = [
      ...unused.filter(([key]) => key.startsWith(SNAPSHOT)), // nobody can ask for these again
      ...tasks.slice(0, Math.max(0, tasks.length - KEPT_UNUSED)),
    ];
    for (const [key, entry] of doomed) {
      this.#entries.delete(key);
      // Out of the map first and renamed at once: the same task may be asked for again meanwhile.
      void entry.ready
        .then(async ({ path }) => {
          const aside = `${path}.${Date.now()}.old`;
          await rename(path, aside);
          await removeTree(aside);
        })
        .catch(() => undefined);
    }
  }
}

type Copier = (target: string) => Promise<number>;

/** Copies the source without what is covered. */
function copier(source: string | undefined, { owner, covered = [] }: LowerOptions): Copier {
  return async (target) => {
    let bytes = 0;
    if (source !== undefined) {
      const fd = openSource(source);
      try {
        bytes = await copyTree(fd, target, { owner, maxBytes: MAX_BYTES, special: 'refuse' });
      } finally {
        closeSync(fd);
      }
    }
    for (const path of covered) await clear(target, path, owner);
    return bytes;
  };
}

/** In a copy that nobody else has yet: no race, but links that must not be followed. */
async function clear(target: string, path: string, owner: CopyOptions['owner']): Promise<void> {
  const names = path.split('/');
  for (let depth = 1; depth <= names.length; depth++) {
    const at = join(target, ...names.slice(0, depth));
    const isDirectory = lstatSync(at, { throwIfNoEntry: false })?.isDirectory() ?? false;
    if (isDirectory && depth < names.length) continue;
    await removeTree(at);
    mkdirSync(at, { mode: 0o755 });
    if (owner) await lchown(at, owner.uid, owner.gid);
  }
}

function openSource(source: string): number {
  try {
    return openSync(source, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (cause) {
    throw new TreewardError('SANDBOX_E_OPTIONS', `workspaceFrom ${source} is not a readable directory`, {
      cause,
      data: { field: 'workspaceFrom', file: source },
    });
  }
}

/** By name, kind, size and times: reading every file again for every rollout would cost more than the copy saves. */
async function fingerprint(source: string): Promise<string> {
  const hash = createHash('sha256');
  const walk = async (fd: number): Promise<void> => {
    for (const name of listNames(fd)) {
      const stat = statEntry(at(fd, name));
      if (!stat) continue;
      hash.update(name).update(`\0${stat.mode} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.ino}\0`);
      if (stat.isDirectory()) {
        hash.update('(');
        await inDirectory(at(fd, name), walk);
        hash.update(')');
      }
    }
  };
  const fd = openSource(source);
  try {
    await walk(fd);
  } finally {
    closeSync(fd);
  }
  return hash.digest('hex').slice(0, 32);
}
