import { TreewardError } from '@treeward/base';
import { AgentSandbox } from './agent-sandbox.js';
import { checkCovers, checkMounts } from './check-mounts.js';
import { CounterSet, type SandboxCounters } from './counters.js';
import type { Launched } from './launch.js';
import { Limiter } from './limiter.js';
import { resolveLimits } from './limits.js';
import { LowerCache, type Lower } from './lower-cache.js';
import { createOwnerFolder, UIDS, type OwnerFolder } from './owner.js';
import { removeTree } from './remove-tree.js';
import type {
  Cover,
  Mount,
  Sandbox,
  SandboxLimits,
  SandboxOptions,
  SandboxProvider,
  SandboxTier,
} from './types.js';

/** What both providers take. */
export interface AgentProviderOptions {
  /** Where folders and leases lie. @default below /run/treeward as root, else below $XDG_RUNTIME_DIR or the temp dir */
  root?: string;
  /** Written into leases. @default '' */
  run?: string;
  /** Sandboxes being started at once; those alive are not counted. @default 4 */
  maxStarts?: number;
  /** Milliseconds for one start, waiting for its turn not counted. @default 30000 */
  createTimeout?: number;
  /** Milliseconds after which the sweeper ends a sandbox of a living owner. @default 6 hours */
  ttl?: number;
}

/** One start, checked and resolved. */
export interface StartRequest {
  id: string;
  folder: OwnerFolder;
  limits: SandboxLimits;
  lower: Lower;
  mounts: readonly Mount[];
  modelDirectory: string | null;
  /** Directories shown read-only below the workspace; the lower layer has an empty directory there. */
  covers: readonly Cover[];
  uid: number;
  trace: boolean;
  ttl: number;
  signal: AbortSignal;
}

export interface Started {
  launched: Launched;
  tier: SandboxTier;
  image: string | null;
  /** How often its memory limit killed something. */
  oomKills: () => Promise<number>;
}

/** What providers share: one folder of leases and task copies, ids, bounded starts, counters, one shape of failure. */
export abstract class AgentProvider implements SandboxProvider {
  abstract readonly name: string;
  protected readonly options: Required<AgentProviderOptions>;
  protected readonly counterSet = new CounterSet();
  readonly #starts: Limiter;
  readonly #alive = new Map<string, Sandbox | null>();
  #ground: { folder: OwnerFolder; lowers: LowerCache } | null = null;

  /** Does no I/O. */
  constructor(options: AgentProviderOptions, defaultRoot: string) {
    this.options = {
      root: options.root ?? defaultRoot,
      run: options.run ?? '',
      maxStarts: options.maxStarts ?? 4,
      createTimeout: options.createTimeout ?? 30_000,
      ttl: options.ttl ?? 6 * 3600 * 1000,
    };
    this.#starts = new Limiter(this.options.maxStarts);
  }

  abstract probe(): Promise<{ tier: SandboxTier; reasons: string[] }>;
  abstract open(options: SandboxOptions): Promise<Sandbox>;
  abstract sweep(): Promise<{ swept: number; live: number }>;

  /** What this provider did so far, for the `sandbox/*` metrics. */
  counters(): SandboxCounters {
    return this.counterSet.snapshot();
  }

  /**
   * Checks the options, waits for a turn and starts.
   * @param asRoot task copies belong to the uid inside, not to the caller
   */
  protected async create(
    options: SandboxOptions,
    asRoot: boolean,
    start: (request: StartRequest) => Promise<Started>,
  ): Promise<Sandbox> {
    const { id } = options;
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id)) {
      throw new TreewardError(
        'SANDBOX_E_OPTIONS',
        `id ${JSON.stringify(id)}: 1 to 64 letters, digits, dots, _ or -`,
      );
    }
    if (this.#alive.has(id)) throw new TreewardError('SANDBOX_E_OPTIONS', `id ${id} is in use`);
    const limits = resolveLimits(options.limits);
    const mounts = checkMounts(options.mounts);
    const covers = checkCovers(options.covers);
    const uid = UIDS[options.user ?? 'task'];
    const owner = asRoot ? { uid, gid: uid } : undefined;
    const modelDirectory =
      options.network.kind === 'model-socket'
        ? checkMounts([{ host: options.network.directory, inside: '/run/model' }])[0]!.host
        : null;
    this.#alive.set(id, null);
    const forget = (): void => void this.#alive.delete(id);
    try {
      return await this.#starts.run(async () => {
        const started = performance.now();
        const timeout = AbortSignal.timeout(this.options.createTimeout);
        const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
        signal.throwIfAborted();
        const { folder, lowers } = this.#prepare();
        const held: Lower[] = [];
        const hold = async (...args: Parameters<LowerCache['acquire']>): Promise<Lower> => {
          const lower = await lowers.acquire(...args);
          held.push(lower);
          return lower;
        };
        const release = (): void => held.forEach((lower) => lower.release());
        try {
          const covered = covers.map(({ path }) => path);
          const lower = await hold(options.workspaceFrom, { owner, covered });
          const copies: Cover[] = [];
          for (const { host, path } of covers)
            copies.push({ host: (await hold(host, { owner })).path, path });
          const parts = await start({
            ...{ id, folder, limits, lower, mounts, modelDirectory, covers: copies, uid, signal },
            ttl: this.options.ttl,
            trace: options.trace ?? false,
          });
          this.counterSet.add('created');
          this.counterSet.time('create', performance.now() - started);
          const sandbox = new AgentSandbox({
            ...parts,
            id,
            lower: { ...lower, release },
            disk: limits.disk,
            counters: this.counterSet,
            adopt: (copy) => lowers.adopt((target) => copy(target, owner), owner),
            onDestroyed: forget,
          });
          this.#alive.set(id, sandbox);
          return sandbox;
        } catch (error) {
          release();
          throw error;
        }
      });
    } catch (error) {
      forget();
      if (options.signal?.aborted) throw options.signal.reason;
      if (TreewardError.isInstance(error) && error.code !== 'SANDBOX_E_LOST') throw error;
      this.counterSet.add('create_failed');
      throw new TreewardError(
        'SANDBOX_E_CREATE',
        `sandbox ${id} did not start: ${(error as Error).message}`,
        {
          cause: error,
          data: { id },
        },
      );
    }
  }

  #prepare(): { folder: OwnerFolder; lowers: LowerCache } {
    if (!this.#ground) {
      const folder = createOwnerFolder(this.options.root, this.options.run);
      this.#ground = { folder, lowers: new LowerCache(folder.lower) };
    }
    return this.#ground;
  }

  /** Destroys every sandbox that is still open and removes the provider's folder. It can be used again afterwards. */
  async close(): Promise<void> {
    await Promise.all([...this.#alive.values()].map((sandbox) => sandbox?.destroy()));
    const ground = this.#ground;
    this.#ground = null;
    if (ground) await removeTree(ground.folder.path);
  }
}
