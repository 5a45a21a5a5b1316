import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeJsonAtomic, type RunFolder } from '@treeward/base';
import type { Learner } from '@treeward/learner';
import { assertTrainable, createTemplate, probeEngine } from '@treeward/policy';
import type { RolloutPool } from '@treeward/rollout';
import type { SandboxProvider } from '@treeward/sandbox';
import { assertVocabulary, checkpointFolder } from './checkpoint-folder.js';
import { latestCheckpoint } from './checkpoints.js';
import { openLog } from './log.js';
import type { TrainConfig } from './config.js';
import { Stack } from './processes/stack.js';
import { configuredProvider } from './sandbox-provider.js';
import { stackPool } from './stack-pool.js';
import { learnerOptions } from './learner-options.js';
import { engineSpec, templateOf } from './engine-spec.js';
import { RecoverPool } from './recover-pool.js';

/** Everything a run keeps open: child processes, sandboxes, rollout pool, recovery threads. */
export class Session {
  readonly stack: Stack;
  readonly sandboxes: SandboxProvider;
  readonly pool: RolloutPool;
  readonly recover: RecoverPool;
  readonly log: Logger;
  policyVersion = 0;
  readonly #run: RunFolder;
  readonly #config: TrainConfig;
  readonly #bannedIds: readonly number[];
  #probed = false;

  private constructor(
    config: TrainConfig,
    stack: Stack,
    sandboxes: SandboxProvider,
    pool: RolloutPool,
    run: RunFolder,
    bannedIds: readonly number[],
  ) {
    this.#config = config;
    this.#bannedIds = bannedIds;
    this.stack = stack;
    this.sandboxes = sandboxes;
    this.pool = pool;
    this.recover = new RecoverPool();
    this.log = openLog(run);
    this.#run = run;
  }

  /** Sweeps what a killed run left behind, then starts the processes. */
  static async open(config: TrainConfig, run: RunFolder): Promise<Session> {
    const checkpoint = await checkpointFolder(config.policy.checkpoint, 'policy.checkpoint');
    const template = templateOf(config.policy.template, checkpoint);
    // Before any process is started: a checkpoint without the template's files is the user's to mend.
    const { bannedIds, vocabSize } = createTemplate(template);
    assertVocabulary(checkpoint, vocabSize);
    const sandboxes = await configuredProvider(config.sandbox);
    const { swept } = await sandboxes.sweep();
    const stack = new Stack({
      runDirectory: run.root,
      template,
      engine: engineSpec(config.engine, template, join(run.root, 'scripts')),
      gateway: {
        encodeThreads: config.gateway.encode_threads,
        logPrompts: config.gateway.log_prompts,
        ...(config.gateway.metrics_port !== null && { metricsPort: config.gateway.metrics_port }),
      },
      learner: () => ({
        checkpoint,
        // A learner that starts again begins where the last finished step left it.
        ...(existsSync(latestCheckpoint(run).path) ? { resume: latestCheckpoint(run).path } : {}),
        optimizer: {
          kind: 'adamw',
          lr: config.optimizer.lr,
          betas: [config.optimizer.beta1, config.optimizer.beta2],
          eps: config.optimizer.epsilon,
          weightDecay: config.optimizer.weight_decay,
        },
        ...learnerOptions(config, checkpoint),
      }),
    });
    await stack.start();
    const pool = stackPool(stack, sandboxes, run, {
      concurrency: config.rollouts.concurrency,
      perHarness: config.rollouts.per_harness,
      trace: config.rollouts.trace,
    });
    const session = new Session(config, stack, sandboxes, pool, run, bannedIds);
    session.log.info({ swept, sandboxes: sandboxes.name, services: stack.pids() }, 'session open');
    return session;
  }

  learner(): Learner {
    return this.stack.learner!;
  }

  /** The learner's current weights become the sampler's. Versions count updates, one per step. */
  async publish(): Promise<void> {
    const { policy, weights } = await this.learner().publish(join(this.#run.root, 'weights'));
    await this.stack.publish(policy, weights);
    this.policyVersion = policy.version;
    if (!this.#probed) await this.#probe();
    this.#probed = true;
  }

  /** What the engine really does, measured once per run. @throws TreewardError ENGINE_E_UNTRAINABLE */
  async #probe(): Promise<void> {
    const { engine, sampling } = this.#config;
    if (engine.kind === 'scripted') return; // plays prepared replies: there is no distribution to measure
    const facts = await probeEngine(this.stack.engine);
    writeJsonAtomic(join(this.#run.root, 'engine.json'), facts);
    const { temperature, top_p: topP, top_k: topK } = sampling;
    assertTrainable(facts, { temperature, topP, topK, bannedIds: this.#bannedIds });
  }

  /** Resolves when the learner answers: how often its process was started again so far. */
  async learnerLife(): Promise<number> {
    const service = this.stack.services.learner!;
    await service.ready();
    return service.restarts;
  }

  /** Has the learner's process died since `life`? A death is noticed a moment after the call that it broke. */
  async learnerDied(life: number, patienceMs = 3000): Promise<boolean> {
    const service = this.stack.services.learner!;
    for (let waited = 0; waited < patienceMs && service.restarts === life; waited += 50) await sleep(50);
    return service.restarts !== life;
  }

  async close(): Promise<void> {
    await this.recover.close();
    await this.pool.close();
    await this.stack.close();
    await this.sandboxes.sweep();
  }
}
