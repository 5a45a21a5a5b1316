import { createHash, randomUUID } from 'node:crypto';
import { closeSync, constants, mkdirSync, openSync } from 'node:fs';
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
  readonly #owner: { uid: number; gid: number } | undefined;
  readonly #entries = new Map<string, Entry>();

  constructor(directory: string, owner: { uid: number; gid: number } | undefined) {
    this.#directory = directory;
    this.#owner = owner;
  }

  /**
   * @throws TreewardError SANDBOX_E_OPTIONS when it is no directory or no snapshot of ours, SANDBOX_E_TREE when it holds
   * devices
   */
  async acquire(source: string | Snapshot | undefined): Promise<Lower> {
    if (typeof source === 'object') return this.#hold(this.#snapshot(source));
    const key = source === undefined ? 'empty' : await fingerprint(source);
    let entry = this.#entries.get(key);
    if (!entry)
      entry = this.#add(key, source === undefined ? () => Promise.resolve(0) : this.#copyOf(source));
    return this.#hold(entry);
  }

  /** Keeps what `copy` makes: it is given an empty directory and the owner that the files should have. */
  async adopt(copy: (target: string, owner: CopyOptions['owner']) => Promise<number>): Promise<Snapshot> {
    const id = `${SNAPSHOT}${randomUUID()}`;
    const { bytes, release } = await this.#hold(this.#add(id, (target) => copy(target, this.#owner)));
    return { id, bytes, release };
  }

  #add(key: string, copy: (target: string) => Promise<number>): Entry {
    const entry = { users: 0, ready: this.#make(copy, join(this.#directory, key)) };
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

  #copyOf(source: string) {
    return async (target: string): Promise<number> => {
      const fd = openSource(source);
      try {
        return await copyTree(fd, target, { owner: this.#owner, maxBytes: MAX_BYTES, special: 'refuse' });
      } finally {
        closeSync(fd);
      }
    };
  }

  async #make(
    copy: (target: string) => Promise<number>,
    target: string,
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
    if (this.#owner) await lchown(temporary, this.#owner.uid, this.#owner.gid);
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
