import { TreewardError } from '@treeward/base';
import { BubblewrapSandbox } from './bubblewrap-sandbox.js';
import { checkMounts } from './bwrap-arguments.js';
import { oomKills } from './cgroups.js';
import { CounterSet, type SandboxCounters } from './counters.js';
import { launch } from './launch.js';
import { Limiter } from './limiter.js';
import { resolveLimits } from './limits.js';
import { LowerCache } from './lower-cache.js';
import { inspectMachine, type Machine } from './machine.js';
import { createOwnerFolder, defaultRoot, SANDBOX_UID, type OwnerFolder } from './owner.js';
import { removeTree } from './remove-tree.js';
import { launchUnsafe } from './unsafe.js';
import { sweepRoot } from './sweep.js';
import { stracePath } from './trace.js';
import type { Sandbox, SandboxOptions, SandboxProvider, SandboxTier } from './types.js';

export interface BubblewrapOptions {
  /** Where folders and leases lie. @default /run/treeward/sandbox as root, else below $XDG_RUNTIME_DIR or the temp dir */
  root?: string;
  /** Written into leases. @default '' */
  run?: string;
  /** Sandboxes being started at once; those alive are not counted. @default 4 */
  maxStarts?: number;
  /** Milliseconds for one start, waiting for its turn not counted. @default 30000 */
  createTimeout?: number;
  /** Milliseconds after which the sweeper ends a sandbox of a living owner. @default 6 hours */
  ttl?: number;
  /**
   * Where nothing can hold a sandbox, run tasks as plain processes of this user instead of refusing. Such sandboxes have
   * tier `none`: they see the host, its network and its files. For tasks you wrote yourself. @default false
   */
  unsafe?: boolean;
  /** What this machine offers; tests put another in its place. @default a look at the machine */
  inspect?: () => { machine: Machine | null; reasons: string[] };
}

type ResolvedOptions = Required<BubblewrapOptions>;

interface Probed {
  tier: SandboxTier;
  reasons: string[];
  machine: Machine | null;
}

interface Ground {
  folder: OwnerFolder;
  lowers: LowerCache;
}

/** Temporary machines out of overlayfs, cgroups, an unprivileged uid, bwrap and seccomp. */
export class BubblewrapProvider implements SandboxProvider {
  readonly name = 'bubblewrap';
  readonly #options: ResolvedOptions;
  readonly #counters = new CounterSet();
  readonly #starts: Limiter;
  readonly #alive = new Map<string, Sandbox | null>();
  #probed: Promise<Probed> | null = null;
  #ground: Ground | null = null;

  /** Does no I/O. */
  constructor(options: BubblewrapOptions = {}) {
    this.#options = {
      root: options.root ?? defaultRoot(),
      run: options.run ?? '',
      maxStarts: options.maxStarts ?? 4,
      createTimeout: options.createTimeout ?? 30_000,
      ttl: options.ttl ?? 6 * 3600 * 1000,
      unsafe: options.unsafe ?? false,
      inspect: options.inspect ?? inspectMachine,
    };
    this.#starts = new Limiter(this.#options.maxStarts);
  }

  /** What this provider did so far, for the `sandbox/*` metrics. */
  counters(): SandboxCounters {
    return this.#counters.snapshot();
  }

  async probe(): Promise<{ tier: SandboxTier; reasons: string[] }> {
    const { tier, reasons } = await this.#probe();
    return { tier, reasons };
  }

  /** Looks, then tries: only a sandbox that ran a command proves that they can be made here. Once per provider. */
  #probe(): Promise<Probed> {
    this.#probed ??= (async () => {
      const { machine, reasons } = this.#options.inspect();
      if (!machine) return { tier: 'none' as const, reasons, machine };
      const tier = machine.mechanism === 'root' && machine.cgroups ? ('full' as const) : ('user' as const);
      try {
        const sandbox = await this.#create(
          { id: `probe-${process.pid}`, network: { kind: 'none' } },
          machine,
          tier,
        );
        try {
          const { code, stderr } = await sandbox.run([
            '/bin/sh',
            '-c',
            'unshare -U true 2>/dev/null && exit 9; exit 0',
          ]);
          if (code !== 0) throw new Error(code === 9 ? 'a nested user namespace was allowed' : stderr);
        } finally {
          await sandbox.destroy();
        }
        return { tier, reasons, machine };
      } catch (error) {
        const tried = `a trial sandbox failed: ${(error as Error).message}`;
        return { tier: 'none' as const, reasons: [...reasons, tried], machine: null };
      }
    })();
    return this.#probed;
  }

  async open(options: SandboxOptions): Promise<Sandbox> {
    const { machine, tier, reasons } = await this.#probe();
    if (!machine && !this.#options.unsafe) {
      throw new TreewardError('SANDBOX_E_TIER', `this machine cannot hold sandboxes: ${reasons.join('; ')}`, {
        hints: [
          'treeward doctor',
          'run as root, or allow unprivileged user namespaces, and install bubblewrap',
          'unsafe: true runs tasks unprotected',
        ],
      });
    }
    return this.#create(options, machine, tier);
  }

  async #create(options: SandboxOptions, machine: Machine | null, tier: SandboxTier): Promise<Sandbox> {
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
    const modelDirectory =
      options.network.kind === 'model-socket'
        ? checkMounts([{ host: options.network.directory, inside: '/run/model' }])[0]!.host
        : null;
    const strace = options.trace && machine ? stracePath() : null;
    this.#alive.set(id, null);
    const forget = (): void => void this.#alive.delete(id);
    try {
      return await this.#starts.run(async () => {
        const started = performance.now();
        const timeout = AbortSignal.timeout(this.#options.createTimeout);
        const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
        signal.throwIfAborted();
        const { folder, lowers } = this.#prepare(machine);
        const lower = await lowers.acquire(options.workspaceFrom);
        try {
          const { ttl } = this.#options;
          const request = { id, folder, limits, lower, mounts, modelDirectory, ttl, signal };
          const launched = machine
            ? await launch({ ...request, machine, strace })
            : await launchUnsafe(request);
          this.#counters.add('created');
          this.#counters.time('create', performance.now() - started);
          const cgroups = machine?.cgroups;
          const sandbox = new BubblewrapSandbox({
            id,
            tier,
            launched,
            lower,
            disk: limits.disk,
            counters: this.#counters,
            oomKills: async () => (cgroups ? oomKills(cgroups, `${folder.name}.${id}`) : 0),
            onDestroyed: forget,
          });
          this.#alive.set(id, sandbox);
          return sandbox;
        } catch (error) {
          lower.release();
          throw error;
        }
      });
    } catch (error) {
      forget();
      if (options.signal?.aborted) throw options.signal.reason;
      if (TreewardError.isInstance(error) && error.code !== 'SANDBOX_E_LOST') throw error;
      this.#counters.add('create_failed');
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

  #prepare(machine: Machine | null): Ground {
    if (!this.#ground) {
      const folder = createOwnerFolder(this.#options.root, this.#options.run);
      const owner = machine?.mechanism === 'root' ? { uid: SANDBOX_UID, gid: SANDBOX_UID } : undefined;
      this.#ground = { folder, lowers: new LowerCache(folder.lower, owner) };
    }
    return this.#ground;
  }

  async sweep(): Promise<{ swept: number; live: number }> {
    const { machine } = this.#options.inspect();
    const result = await sweepRoot(this.#options.root, machine?.cgroups ?? null);
    this.#counters.add('swept', result.swept);
    return result;
  }

  /** Destroys every sandbox that is still open and removes the provider's folder. It can be used again afterwards. */
  async close(): Promise<void> {
    await Promise.all([...this.#alive.values()].map((sandbox) => sandbox?.destroy()));
    const ground = this.#ground;
    this.#ground = null;
    if (ground) await removeTree(ground.folder.path);
  }
}
