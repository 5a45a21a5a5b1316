import { closeSync, constants, mkdirSync, openSync, readdirSync } from 'node:fs';
import { posix } from 'node:path';
import { TreewardError } from '@treeward/base';
import { BASE_ENV } from './bwrap-arguments.js';
import type { CounterSet } from './counters.js';
import type { Launched } from './launch.js';
import type { Lower } from './lower-cache.js';
import { copyTree, type CopyOptions } from './tree.js';
import type {
  Execution,
  FileChange,
  RunOptions,
  RunResult,
  Sandbox,
  SandboxSession,
  SandboxTier,
  Snapshot,
} from './types.js';

const MAX_READ = 64 * 1024 * 1024;

export interface AgentSandboxParts {
  id: string;
  tier: SandboxTier;
  /** Of a container: its image, by content. */
  image: string | null;
  launched: Launched;
  lower: Lower;
  /** Bytes its disk may hold. */
  disk: number;
  counters: CounterSet;
  oomKills: () => Promise<number>;
  /** Keeps a copy that `copy` makes in an empty directory, with the owner its files should have. */
  adopt: (copy: (target: string, owner: CopyOptions['owner']) => Promise<number>) => Promise<Snapshot>;
  onDestroyed: () => void;
}

/** A running sandbox, whatever made it: an agent inside, and the directories of its workspace held open outside. */
export class AgentSandbox implements Sandbox {
  readonly id: string;
  readonly tier: SandboxTier;
  readonly image: string | null;
  readonly workspace: string;
  readonly home: string;
  readonly modelUrl: string | null;
  readonly #parts: AgentSandboxParts;
  #destroyed: Promise<void> | null = null;
  #outOfMemory = false;
  /** changes() and exports in flight: the directories stay open until they are done. */
  readonly #readers = new Set<Promise<unknown>>();

  constructor(parts: AgentSandboxParts) {
    this.#parts = parts;
    this.id = parts.id;
    this.tier = parts.tier;
    this.image = parts.image;
    this.workspace = parts.launched.workspace;
    this.home = parts.launched.home;
    this.modelUrl = parts.launched.modelUrl;
  }

  session(): SandboxSession {
    return {
      id: this.id,
      workspace: this.workspace,
      home: this.home,
      write: (path, data, options) => this.write(path, data, options),
      read: (path) => this.read(path),
      run: (argv, options) => this.run(argv, options),
    };
  }

  async write(path: string, data: string | Uint8Array, options: { mode?: number } = {}): Promise<void> {
    this.#assertOpen();
    const bytes = typeof data === 'string' ? Buffer.from(data) : data;
    await this.#parts.launched.client.write(this.#inside(path), bytes, options.mode ?? 0o644);
  }

  async read(path: string): Promise<Uint8Array> {
    this.#assertOpen();
    return this.#parts.launched.client.read(this.#inside(path), MAX_READ);
  }

  async run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    this.#assertOpen();
    const { counters, launched } = this.#parts;
    const started = performance.now();
    const env = { ...BASE_ENV, HOME: this.home, ...options.env };
    const result = await launched.client.exec(
      argv,
      env,
      this.#inside(options.cwd ?? this.workspace),
      options,
    );
    counters.time('exec', performance.now() - started);
    if (result.timedOut) counters.add('timeout');
    return result;
  }

  changes(): Promise<FileChange[]> {
    this.#assertOpen();
    return this.#reading(this.#parts.launched.changes());
  }

  executions(): Promise<Execution[]> {
    this.#assertOpen();
    return this.#reading(this.#parts.launched.executions());
  }

  exportWorkspace(directory: string): Promise<void> {
    this.#assertOpen();
    return this.#reading(this.#export(directory));
  }

  async #export(directory: string): Promise<void> {
    mkdirSync(directory, { recursive: true });
    if (readdirSync(directory).length) {
      throw new TreewardError('SANDBOX_E_EXPORT', `export directory ${directory} is not empty`, {
        data: { file: directory },
      });
    }
    const { launched, lower, disk } = this.#parts;
    // The target by descriptor too: its own path may run through links, and may be relative.
    const target = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await copyTree(launched.merged, `/proc/self/fd/${target}`, {
        maxBytes: lower.bytes + disk,
        special: 'skip',
      });
    } finally {
      closeSync(target);
    }
  }

  snapshot(): Promise<Snapshot> {
    this.#assertOpen();
    const { adopt, launched, lower, disk } = this.#parts;
    return this.#reading(
      adopt((target, owner) =>
        copyTree(launched.merged, target, { owner, maxBytes: lower.bytes + disk, special: 'skip' }),
      ),
    );
  }

  async outOfMemory(): Promise<boolean> {
    if (!this.#destroyed) this.#outOfMemory ||= (await this.#parts.oomKills()) > 0;
    return this.#outOfMemory;
  }

  destroy(): Promise<void> {
    this.#destroyed ??= this.#destroy();
    return this.#destroyed;
  }

  async #destroy(): Promise<void> {
    const { counters, launched, lower, onDestroyed, oomKills } = this.#parts;
    const started = performance.now();
    this.#outOfMemory ||= (await oomKills()) > 0;
    if (this.#outOfMemory) counters.add('oom');
    await Promise.allSettled(this.#readers);
    const clean = await launched.tearDown();
    lower.release();
    counters.add('destroyed');
    if (!clean) counters.add('leaked');
    counters.time('destroy', performance.now() - started);
    onDestroyed();
  }

  #reading<T>(work: Promise<T>): Promise<T> {
    this.#readers.add(work);
    const done = (): void => void this.#readers.delete(work);
    work.then(done, done);
    return work;
  }

  #assertOpen(): void {
    if (this.#destroyed) throw new TreewardError('SANDBOX_E_CLOSED', `sandbox ${this.id} is destroyed`);
  }

  /** Relative paths start at the workspace. What they lead to is decided inside, where there is nothing to reach. */
  #inside(path: string): string {
    if (path === '' || path.includes('\0')) {
      throw new TreewardError('SANDBOX_E_OPTIONS', `${JSON.stringify(path)} is not a path`);
    }
    return posix.isAbsolute(path) ? path : `${this.workspace}/${path}`;
  }
}
