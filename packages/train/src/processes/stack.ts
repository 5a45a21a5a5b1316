import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { remoteGateway, type RemoteGateway } from '@treeward/gateway';
import { learnerEntry, RemoteLearner, type Learner, type LearnerProcessConfig } from '@treeward/learner';
import {
  engineEnvironment,
  engineMain,
  remoteEngine,
  type Engine,
  type EngineConfig,
  type Policy,
  type TemplateSpec,
  type WeightsRef,
} from '@treeward/policy';
import type { GatewayConfig } from './gateway-main.js';
import { Service } from './service.js';

/** An engine's configuration without what the stack adds: where it notes its weights. */
export type EngineSpec = EngineConfig extends infer Config
  ? Config extends unknown
    ? Omit<Config, 'state'>
    : never
  : never;

/** Two minutes of silence: neither is ever busy for so long without answering, however slow the machine. */
const WATCH = { everyMs: 20_000, questions: 6 } as const;

export interface StackOptions {
  /** The run's folder: names the runtime directory, holds the logs. */
  runDirectory: string;
  template: TemplateSpec;
  engine: EngineSpec;
  gateway?: Pick<GatewayConfig, 'encodeThreads' | 'logPrompts' | 'metricsPort' | 'plain'>;
  /** Asked at every start of the learner. Absent: no learner (rollouts only). */
  learner?: () => LearnerProcessConfig;
}

/**
 * The child processes of a run and the typed handles on them. Sockets lie in a short directory derived from the run's
 * path (unix socket paths end at 107 bytes); a run that was killed finds and clears its own leftovers there.
 */
export class Stack {
  readonly runtime: string;
  readonly socketRoot: string;
  readonly gateway: RemoteGateway;
  readonly engine: Engine;
  readonly learner: Learner | null;
  readonly services: { engine: Service; gateway: Service; learner: Service | null };

  readonly #runDirectory: string;

  constructor(options: StackOptions) {
    const runDirectory = resolve(options.runDirectory);
    this.#runDirectory = runDirectory;
    const digest = createHash('sha256').update(runDirectory).digest('hex').slice(0, 10);
    this.runtime = join(tmpdir(), `treeward-${userInfo().uid}`, digest);
    this.socketRoot = join(this.runtime, 's');
    const socket = (name: string): string => join(this.runtime, `${name}.sock`);
    const log = (name: string): string => join(runDirectory, `${name}.log`);
    this.engine = remoteEngine(socket('engine'));
    this.gateway = remoteGateway(socket('gateway'), { retryFor: 30_000 });
    this.learner = options.learner
      ? new RemoteLearner(socket('learner'), { scratch: join(this.runtime, 'batches') })
      : null;
    this.services = {
      engine: new Service({
        name: 'engine',
        entry: engineMain,
        env: engineEnvironment,
        socketPath: socket('engine'),
        // `state` lets a restarted engine load the last published weights before it answers.
        config: (): EngineConfig => ({
          ...(options.engine as EngineConfig),
          state: join(this.runtime, 'engine.json'),
        }),
        logFile: log('engine'),
        runDirectory,
        watch: WATCH,
      }),
      gateway: new Service({
        name: 'gateway',
        entry: fileURLToPath(new URL('gateway-main.js', new URL(import.meta.url.replace('/src/', '/dist/')))),
        socketPath: socket('gateway'),
        config: (): GatewayConfig => ({
          engineSocket: socket('engine'),
          template: options.template,
          ...options.gateway,
        }),
        logFile: log('gateway'),
        runDirectory,
        watch: WATCH,
      }),
      learner: options.learner
        ? new Service({
            name: 'learner',
            entry: learnerEntry,
            socketPath: socket('learner'),
            config: options.learner,
            logFile: log('learner'),
            runDirectory,
          })
        : null,
    };
  }

  async start(): Promise<void> {
    mkdirSync(this.#runDirectory, { recursive: true });
    rmSync(this.runtime, { recursive: true, force: true });
    mkdirSync(this.socketRoot, { recursive: true });
    // The sandbox's unprivileged uid walks through to its own rollout's directory; it can list none of them.
    for (const directory of [join(this.runtime, '..'), this.runtime, this.socketRoot])
      chmodSync(directory, 0o711);
    await Promise.all(Object.values(this.services).map((service) => service?.start()));
  }

  /** Aborted, with the reason, when engine or gateway died too often to be started again: no rollout can run any more. */
  get lost(): AbortSignal {
    return AbortSignal.any([this.services.engine.lost, this.services.gateway.lost]);
  }

  /** Milliseconds so far in which rollouts had no model, because engine or gateway was away. */
  awayMs(): number {
    return this.services.engine.awayMs + this.services.gateway.awayMs;
  }

  /** Whether the engine says something now; one that hangs does not. */
  async answers(patienceMs = 5000): Promise<boolean> {
    const answer = this.engine.describe().then(
      () => true,
      () => false,
    );
    return Promise.race([answer, sleep(patienceMs, false, { ref: false })]);
  }

  pids(): Record<string, number | undefined> {
    return Object.fromEntries(Object.entries(this.services).map(([name, service]) => [name, service?.pid]));
  }

  /** Swaps the sampler's weights; a restarted engine gets the same ones again. */
  async publish(policy: Policy, weights: WeightsRef): Promise<void> {
    const restarts = this.services.engine.restarts;
    try {
      await this.engine.load(policy, weights);
    } catch (error) {
      for (let waited = 0; waited < 3000 && this.services.engine.restarts === restarts; waited += 50)
        await sleep(50);
      if (this.services.engine.restarts === restarts) throw error;
      await this.services.engine.ready();
      await this.engine.load(policy, weights);
    }
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.services).map((service) => service?.stop()));
    rmSync(this.runtime, { recursive: true, force: true });
  }
}
