import { createHash } from 'node:crypto';
import { closeSync, constants, mkdirSync, openSync } from 'node:fs';
import { chmod, lchown, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import { removeTree } from './remove-tree.js';
import { at, copyTree, inDirectory, listNames, statEntry } from './tree.js';

const KEPT_UNUSED = 32;
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

  /** @throws TreewardError SANDBOX_E_OPTIONS when it is no directory, SANDBOX_E_TREE when it holds devices */
  async acquire(source: string | undefined): Promise<Lower> {
    const key = source === undefined ? 'empty' : await fingerprint(source);
    let entry = this.#entries.get(key);
    if (!entry) {
      entry = { users: 0, ready: this.#copy(source, join(this.#directory, key)) };
      this.#entries.set(key, entry);
      entry.ready.catch(() => this.#entries.delete(key));
    }
    entry.users++;
    const held = entry;
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      held.users--;
      this.#evict();
    };
    try {
      return { ...(await held.ready), release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #copy(source: string | undefined, target: string): Promise<{ path: string; bytes: number }> {
    const temporary = `${target}.tmp`;
    await removeTree(temporary);
    mkdirSync(temporary, { mode: 0o755 });
    let bytes = 0;
    if (source !== undefined) {
      const fd = openSource(source);
      try {
        bytes = await copyTree(fd, temporary, { owner: this.#owner, maxBytes: MAX_BYTES, special: 'refuse' });
      } catch (error) {
        await removeTree(temporary);
        throw error;
      } finally {
        closeSync(fd);
      }
    }
    if (this.#owner) await lchown(temporary, this.#owner.uid, this.#owner.gid);
    await chmod(temporary, 0o755);
    await rename(temporary, target);
    return { path: target, bytes };
  }

  #evict(): void {
    const unused = [...this.#entries].filter(([, entry]) => entry.users === 0);
    for (const [key, entry] of unused.slice(0, Math.max(0, unused.length - KEPT_UNUSED))) {
      this.#entries.delete(key);
      // Out of the map first and renamed at once: the same task may be asked for again meanwhile.
      void entry.ready
        .then(async ({ path }) => {
          const doomed = `${path}.${Date.now()}.old`;
          await rename(path, doomed);
          await removeTree(doomed);
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
