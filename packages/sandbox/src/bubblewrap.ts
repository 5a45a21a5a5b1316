import { TreewardError } from '@treeward/base';
import { AgentProvider, type AgentProviderOptions } from './agent-provider.js';
import { oomKills } from './cgroups.js';
import { launch } from './launch.js';
import { inspectMachine, type Machine } from './machine.js';
import { defaultRoot, type OwnerFolder } from './owner.js';
import { launchUnsafe } from './unsafe.js';
import { Spawner } from './spawner.js';
import { sweepRoot } from './sweep.js';
import { stracePath } from './trace.js';
import type { Sandbox, SandboxOptions, SandboxTier } from './types.js';

export interface BubblewrapOptions extends AgentProviderOptions {
  /**
   * Where nothing can hold a sandbox, run tasks as plain processes of this user instead of refusing. Such sandboxes have
   * tier `none`: they see the host, its network and its files. For tasks you wrote yourself. @default false
   */
  unsafe?: boolean;
  /** What this machine offers; tests put another in its place. @default a look at the machine */
  inspect?: () => { machine: Machine | null; reasons: string[] };
}

interface Probed {
  tier: SandboxTier;
  reasons: string[];
  machine: Machine | null;
}

/** Temporary machines out of overlayfs, cgroups, an unprivileged uid, bwrap and seccomp. */
export class BubblewrapProvider extends AgentProvider {
  readonly name = 'bubblewrap';
  readonly #unsafe: boolean;
  readonly #inspect: () => { machine: Machine | null; reasons: string[] };
  #probed: Promise<Probed> | null = null;
  #spawner: Spawner | null = null;

  /** Does no I/O. */
  constructor(options: BubblewrapOptions = {}) {
    super(options, defaultRoot('sandbox'));
    this.#unsafe = options.unsafe ?? false;
    this.#inspect = options.inspect ?? inspectMachine;
  }

  async probe(): Promise<{ tier: SandboxTier; reasons: string[] }> {
    const { tier, reasons } = await this.#probe();
    return { tier, reasons };
  }

  /** Looks, then tries: only a sandbox that ran a command proves that they can be made here. Once per provider. */
  #probe(): Promise<Probed> {
    this.#probed ??= (async () => {
      const { machine, reasons } = this.#inspect();
      if (!machine) return { tier: 'none' as const, reasons, machine };
      const tier = machine.mechanism === 'root' && machine.cgroups ? ('full' as const) : ('user' as const);
      try {
        const sandbox = await this.#open(
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
    if (!machine && !this.#unsafe) {
      throw new TreewardError('SANDBOX_E_TIER', `this machine cannot hold sandboxes: ${reasons.join('; ')}`, {
        hints: [
          'treeward doctor',
          'run as root, or allow unprivileged user namespaces, and install bubblewrap',
          'unsafe: true runs tasks unprotected',
        ],
      });
    }
    return this.#open(options, machine, tier);
  }

  #open(options: SandboxOptions, machine: Machine | null, tier: SandboxTier): Promise<Sandbox> {
    const strace = options.trace && machine ? stracePath() : null;
    return this.create(options, machine?.mechanism === 'root', async (request) => {
      const cgroups = machine?.cgroups;
      return {
        launched: machine
          ? await launch({ ...request, machine, strace, spawner: this.#spawnerOf(request.folder) })
          : await launchUnsafe(request),
        tier,
        image: null,
        oomKills: async () => (cgroups ? oomKills(cgroups, `${request.folder.name}.${request.id}`) : 0),
      };
    });
  }

  /** One for all sandboxes; another in place of one that was killed. */
  #spawnerOf({ agent, path }: OwnerFolder): Spawner {
    if (!this.#spawner?.alive) this.#spawner = new Spawner(agent, path);
    return this.#spawner;
  }

  override async close(): Promise<void> {
    await super.close();
    const spawner = this.#spawner;
    this.#spawner = null;
    await spawner?.close();
  }

  async sweep(): Promise<{ swept: number; live: number }> {
    const { machine } = this.#inspect();
    const result = await sweepRoot(this.options.root, machine?.cgroups ?? null);
    this.counterSet.add('swept', result.swept);
    return result;
  }
}
