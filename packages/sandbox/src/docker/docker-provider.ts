import { release } from 'node:os';
import type Docker from 'dockerode';
import { TreewardError } from '@treeward/base';
import { AgentProvider, type AgentProviderOptions } from '../agent-provider.js';
import { defaultRoot } from '../owner.js';
import { sweepRoot } from '../sweep.js';
import type { Sandbox, SandboxOptions, SandboxTier } from '../types.js';
import { dockerClient } from './client.js';
import { DEFAULT_IMAGE } from './image-recipe.js';
import { launchContainer } from './launch-container.js';
import { sweepContainers } from './sweep-containers.js';

export interface DockerOptions extends AgentProviderOptions {
  /** The daemon's unix socket; it must run on this host. @default $DOCKER_HOST (unix://…), else /var/run/docker.sock */
  socket?: string;
  /** Name or id. @default the one that scripts/build-image.mjs makes */
  image?: string;
  /** A runtime the daemon knows, such as `runsc` (gVisor). @default the daemon's own */
  runtime?: string;
}

interface Probed {
  tier: SandboxTier;
  reasons: string[];
  /** Id of the image; null when the tier is `none`. */
  image: string | null;
}

/** The same sandboxes as containers: for tasks that bring an image, or hosts where containers are what is trusted. */
export class DockerProvider extends AgentProvider {
  readonly name = 'docker';
  readonly #docker: Docker;
  readonly #image: string;
  readonly #runtime: string | null;
  #probed: Promise<Probed> | null = null;

  /** Does no I/O. */
  constructor(options: DockerOptions = {}) {
    super(options, defaultRoot('docker'));
    this.#docker = dockerClient(options.socket ?? defaultSocket());
    this.#image = options.image ?? DEFAULT_IMAGE;
    this.#runtime = options.runtime ?? null;
  }

  async probe(): Promise<{ tier: SandboxTier; reasons: string[] }> {
    const { tier, reasons } = await this.#probe();
    return { tier, reasons };
  }

  #probe(): Promise<Probed> {
    this.#probed ??= (async () => {
      const none = (reason: string): Probed => ({ tier: 'none', reasons: [reason], image: null });
      if (process.getuid?.() !== 0)
        return none('not root: the workspace could not be mounted for the daemon');
      if (process.arch !== 'x64') return none(`no seccomp table for ${process.arch}`);
      try {
        const { Version, ApiVersion } = await this.#docker.version();
        const image = await this.#imageId();
        if (image === null) {
          return none(`image ${this.#image} is not there: node packages/sandbox/scripts/build-image.mjs`);
        }
        const sandbox = await this.#open({ id: `probe-${process.pid}`, network: { kind: 'none' } }, image);
        try {
          const trial = 'echo trial > trial; uname -r; unshare -U true 2>/dev/null && echo nested; exit 0';
          const { code, stdout, stderr } = await sandbox.run(['/bin/sh', '-c', trial]);
          if (code !== 0) throw new Error(stderr);
          const [kernel, nested] = stdout.split('\n');
          // gVisor has a kernel of its own: namespaces there are not the host's.
          if (nested && kernel === release()) throw new Error('a nested user namespace was allowed');
          if ((await sandbox.changes())[0]?.path !== 'trial') {
            throw new Error('its workspace is not on this host: a remote daemon cannot be used');
          }
        } finally {
          await sandbox.destroy();
        }
        return {
          tier: 'full' as const,
          reasons: [`docker ${Version} (API ${ApiVersion}), image ${image}`],
          image,
        };
      } catch (error) {
        return none((error as Error).message);
      }
    })();
    return this.#probed;
  }

  async #imageId(): Promise<string | null> {
    try {
      return (await this.#docker.getImage(this.#image).inspect()).Id;
    } catch (error) {
      if ((error as { statusCode?: number }).statusCode === 404) return null;
      throw error;
    }
  }

  async open(options: SandboxOptions): Promise<Sandbox> {
    const { image, reasons } = await this.#probe();
    if (image === null) {
      throw new TreewardError('SANDBOX_E_TIER', `docker cannot hold sandboxes here: ${reasons.join('; ')}`, {
        hints: ['start a Docker daemon, or name its socket', 'use the bubblewrap provider'],
      });
    }
    return this.#open(options, image);
  }

  #open(options: SandboxOptions, image: string): Promise<Sandbox> {
    if (options.trace) {
      throw new TreewardError('SANDBOX_E_TRACE', 'commands in containers cannot be watched', {
        hints: ['use the bubblewrap provider, or open sandboxes without `trace`'],
      });
    }
    return this.create(options, true, async (request) => {
      const launched = await launchContainer(this.#docker, {
        ...request,
        image,
        runtime: this.#runtime,
        run: this.options.run,
      });
      return { launched, tier: 'full', image, oomKills: launched.oomKills };
    });
  }

  async sweep(): Promise<{ swept: number; live: number }> {
    const orphans = await sweepContainers(this.#docker, this.options.root);
    const { swept, live } = await sweepRoot(this.options.root, null);
    this.counterSet.add('swept', swept + orphans);
    return { swept: swept + orphans, live };
  }
}

function defaultSocket(): string {
  const host = process.env['DOCKER_HOST'] ?? '';
  return host.startsWith('unix://') ? host.slice('unix://'.length) : '/var/run/docker.sock';
}
