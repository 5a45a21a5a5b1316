/**
 * The training loop, top to bottom: tasks → rollouts → recovery → credit → one update → new sampler weights → checkpoint.
 *
 * Deviations from the papers, named: `rloo` uses a leave-one-out baseline and a constant normaliser (planned rollouts ×
 * norm_tokens) instead of GRPO's std and per-trajectory mean; every sampled token of every call stands in the loss once, failed
 * and retried attempts included; infrastructure failures are outside baseline and loss. logp_old are the learner's weights at
 * the start of the update; w = min(exp(logp_old - logp_rollout), c) covers what the sampler computed differently.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { randomStream, readJson, toPlainError, writeJsonAtomic, type RunFolder } from '@treeward/base';
import {
  groupAdvantages,
  packTrees,
  resolveAlgorithm,
  scheduledRate,
  type Learner,
  type Loss,
  type OptimizerStep,
  type ResolvedAlgorithm,
} from '@treeward/learner';
import { applyPreset, presets } from '@treeward/tree-recovery';
import { INFRASTRUCTURE, type RolloutResult } from '@treeward/rollout';
import { latestCheckpoint, prune } from './checkpoints.js';
import { methodOf } from './algo-config.js';
import type { TrainConfig } from './config.js';
import { evaluateHeldOut, type HeldOutResult } from './held-out.js';
import { JsonlSink, type Metrics } from './metrics.js';
import { Progress } from './progress.js';
import { planStep } from './plan-step.js';
import { shuffledRewards } from './shuffled-rewards.js';
import { callVotes, stateBaselines } from './state-baselines.js';
import { batchMetrics } from './batch-metrics.js';
import type { Session } from './session.js';
import { StepProgress } from './step-progress.js';

export interface TrainOutcome {
  steps: number;
  interrupted: boolean;
  before: HeldOutResult | null;
  after: HeldOutResult | null;
  results: RolloutResult[];
  /** Seconds by part, of this process's lifetime. */
  time: { rollouts: number; recovery: number; update: number; evaluation: number };
}

/** First Ctrl-C: finish the step and save. Second: give the step up. */
export interface StopSignals {
  afterStep: AbortSignal;
  now: AbortSignal;
}

/** What a finished step leaves in its checkpoint; the rename of that folder is what makes the step count. */
interface StepRecord {
  step: number;
  metrics: Metrics;
}

export async function trainLoop(
  config: TrainConfig,
  run: RunFolder,
  session: Session,
  progress: Progress,
  stop: StopSignals,
): Promise<TrainOutcome> {
  const signal = stop.now;
  const sink = new JsonlSink(run.metrics);
  const time = { rollouts: 0, recovery: 0, update: 0, evaluation: 0 };
  const results: RolloutResult[] = [];
  const timed = async <T>(part: keyof typeof time, work: () => Promise<T>): Promise<T> => {
    const start = performance.now();
    try {
      return await work();
    } finally {
      time[part] += (performance.now() - start) / 1000;
    }
  };

  // A resumed run continues from its last finished step; what came after that is redone with the same random streams.
  const start = latestCheckpoint(run);
  if (!existsSync(start.path)) {
    await saveStep(run, session.learner(), 0);
    commitStep(run, { step: 0, metrics: {} });
  }
  sink.rewind(start.step);
  if (start.step > 0 && start.metricsMissing(run.metrics))
    sink.log(readJson<StepRecord>(join(start.path, 'step.json')).metrics);
  await session.publish();

  const before = await timed('evaluation', () =>
    evaluateHeldOut('before', config, run, session, progress, signal),
  );

  let step = start.step;
  while (step < config.run.steps && !signal.aborted && !stop.afterStep.aborted) {
    step++;
    const stepStart = performance.now();
    const lap = { ...time };

    // Rollouts: groups of one task × harness, all with the same policy version.
    const plan = planStep(config, run, step);
    const display = new StepProgress(progress, step, config.run.steps, plan.specs.length);
    const batch = await timed('rollouts', () =>
      session.pool.run(plan.specs, (result) => display.done(result), { signal }),
    );
    if (signal.aborted) break; // the step in progress is lost, nothing else
    results.push(...batch);
    for (const { rolloutId, fault } of batch)
      if (fault) session.log.warn({ step, rolloutId, ...fault }, 'rollout fault');

    // Recovery: records → trees, on Piscina threads. A rollout that never got a record has no tree.
    const usable = batch.filter(
      (result) => isTrainable(result) && existsSync(run.rollout(result.rolloutId).telemetry),
    );
    const recovered = await timed('recovery', () =>
      session.recover.recover(usable.map((result) => run.rollout(result.rolloutId).root)),
    );
    // Which calls a method trains is part of the method.
    const { calls, algorithm } = methodOf(config.algo);
    const trees = recovered.map((tree) => applyPreset(tree, presets[calls]));

    // Credit: one vote per rollout, one baseline per task × harness (or per call: its workspace's grade); packed so that each sampled token stands once.
    const groups = usable.map((result) => result.group);
    const rewards = usable.map((result) => result.reward);
    const method = resolveAlgorithm(algorithm, plan.specs.length);
    const votes =
      config.algo.rewards === 'own'
        ? rewards
        : shuffledRewards(rewards, groups, randomStream(config.run.seed, 'shuffled-rewards', step));
    const advantages = method.group
      ? groupAdvantages(votes, groups, method.group)
      : votes.map((vote) => (vote === null ? null : 0)); // a critic's, later
    const states = method.workspaceScore ? stateBaselines(batch, trees) : null;
    const packed = packTrees(
      trees.map((tree, index) => ({ ...tree, reward: votes[index]! })),
      advantages,
      states ? { callBaseline: states.of } : {},
    );
    const perTree = states ? callVotes(packed) : advantages.map((vote) => (vote === null ? [] : [vote]));

    // One atomic update; its weights are saved, then they become the sampler's. A learner that dies on the way comes back with
    // the last finished step's weights, and the same update is made again.
    const update = await timed('update', () =>
      surviving(session, async () => {
        const metrics = await session
          .learner()
          .update(packed, lossOf(config, method, step), optimizerOf(config, step));
        await saveStep(run, session.learner(), step);
        await session.publish();
        return metrics;
      }),
    );

    const metrics: Metrics = {
      'progress/step': step,
      'progress/done_frac': step / config.run.steps,
      ...batchMetrics(batch, trees, method.group ? perTree : null),
      ...states?.metrics,
      ...update,
      'time/rollout': time.rollouts - lap.rollouts,
      'time/recover': time.recovery - lap.recovery,
      'time/update': time.update - lap.update,
      'time/step': (performance.now() - stepStart) / 1000,
    };
    writeJsonAtomic(run.batch(step), {
      step,
      rollouts: plan.specs.map((spec) => spec.rolloutId),
      used: usable.map((result) => result.rolloutId),
    });
    commitStep(run, { step, metrics });
    sink.log(metrics);
    session.log.info(
      { step, policyVersion: session.policyVersion, seconds: metrics['time/step'] },
      'step committed',
    );
    display.finish(metrics);
    prune(run, config.checkpoint, step);
  }

  const interrupted = signal.aborted || stop.afterStep.aborted;
  const after =
    interrupted || step === 0
      ? null
      : await timed('evaluation', () =>
          evaluateHeldOut(`after-${step}`, config, run, session, progress, signal),
        );
  sink.close();
  return { steps: step, interrupted, before, after, results, time };
}

/** Counts in baseline and loss: it has a number, and no machinery of ours failed under it. */
function isTrainable(result: RolloutResult): boolean {
  return result.reward !== null && (result.fault === null || !INFRASTRUCTURE.has(result.fault.kind));
}

async function surviving<T>(session: Session, work: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    const life = await session.learnerLife();
    try {
      const value = await work();
      // A process that was replaced in between has forgotten the update it was asked to save.
      if (!(await session.learnerDied(life, 0))) return value;
    } catch (error) {
      session.log.error({ tries, error: toPlainError(error) }, 'update failed');
      if (tries >= 2 || !(await session.learnerDied(life))) throw error;
    }
  }
}

const working = (run: RunFolder, step: number): string =>
  join(run.checkpoints, `.${basename(run.checkpoint(step))}.writing`);

async function saveStep(run: RunFolder, learner: Learner, step: number): Promise<void> {
  rmSync(working(run, step), { recursive: true, force: true });
  mkdirSync(working(run, step), { recursive: true });
  await learner.save(working(run, step));
}

/** The rename is the instant at which the step counts. */
function commitStep(run: RunFolder, record: StepRecord): void {
  writeJsonAtomic(join(working(run, record.step), 'step.json'), record);
  rmSync(run.checkpoint(record.step), { recursive: true, force: true });
  renameSync(working(run, record.step), run.checkpoint(record.step));
}

/** PPO's first steps train the critic alone: values that mean nothing would move the policy at random. */
function lossOf(config: TrainConfig, method: ResolvedAlgorithm, step: number): Loss {
  const { algo } = config;
  const seed = `${config.run.seed}/${step}`;
  const { critic, minibatches } = method.loss;
  if (algo.type === 'ppo' && critic && step <= algo.value_steps)
    return { kind: 'value', critic, epochs: algo.value_epochs, minibatches, seed };
  return { ...method.loss, seed };
}

function optimizerOf(config: TrainConfig, step: number): OptimizerStep {
  const { lr, warmup_steps, schedule, floor, max_grad_norm } = config.optimizer;
  const rate = { lr, warmupSteps: warmup_steps, shape: schedule, floor };
  return { lr: scheduledRate(rate, step, config.run.steps), maxGradNorm: max_grad_norm };
}
