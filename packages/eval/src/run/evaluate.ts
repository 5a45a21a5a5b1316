import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, RunFolder, TreewardError, writeJsonAtomic } from '@treeward/base';
import {
  INFRASTRUCTURE,
  RolloutPool,
  type RolloutDeps,
  type RolloutResult,
  type RolloutSpec,
} from '@treeward/rollout';
import { materialise, type WrittenTask } from '../formats/materialise.js';
import { EvalGrader, readGrade } from '../grade/eval-grader.js';
import type { Judge } from '../judge/judge.js';
import type { Price } from '../transcript/events.js';
import type { LoadedTasks } from '../types.js';
import { rolloutName, taskName } from './names.js';
import { outcomeOf, summariseEvaluation } from './outcome.js';
import type { EvaluationIdentity, EvaluationSummary, RunOutcome } from './summary.js';

export interface EvaluateOptions {
  identity: EvaluationIdentity;
  loaded: LoadedTasks;
  /** Whether the tasks are a whole suite, and what is to be said of them. */
  complete: boolean;
  note: string | null;
  out: RunFolder;
  runs: number;
  /** @default 1 */
  timeoutMultiplier?: number;
  /** Seconds of a task whose format says none. @default 600 */
  timeoutSeconds?: number;
  limits: { maxTurns: number; maxTokens: number };
  concurrency: number;
  perHarness?: Readonly<Record<string, number>>;
  /** Times a failure of the machinery is tried again. @default 2 */
  retries?: number;
  threshold: number;
  judge?: Judge;
  price: Price | null;
  /** Without `grader` and `folder`, which are ours. */
  deps: Omit<RolloutDeps, 'grader' | 'folder'>;
  /**
   * Ids of tasks that run before the others; when every run of one of them scores 0, the others do not run: nothing works.
   * @default none
   */
  sanity?: readonly string[];
  /** Called once, before the first rollout that will really run: engines need not start for what is finished. */
  prepare?: () => Promise<void>;
  /** Called before each rollout that will really run (a scripted policy writes its replies then). */
  onPlanned?: (spec: RolloutSpec, task: WrittenTask, run: number) => void;
  onProgress?: (progress: EvaluationProgress) => void;
  signal?: AbortSignal;
}

export interface EvaluationProgress {
  done: number;
  total: number;
  graded: number;
  meanScore: number | null;
  costUsd: number;
  seconds: number;
  /** Estimated; null before the first. */
  secondsLeft: number | null;
}

interface Planned {
  task: WrittenTask;
  run: number;
  spec: RolloutSpec;
}

/**
 * Runs every task `runs` times and grades it. A rollout whose result is there is read; one that failed by the machinery is run
 * again; one that only its grading failed is graded again from what it kept. So a killed evaluation goes on where it was, and a
 * larger `runs` adds runs.
 * @throws TreewardError RUN_E_DIFFERENT when the folder holds an evaluation of something else
 */
export async function evaluate(options: EvaluateOptions): Promise<EvaluationSummary> {
  const { out, loaded, identity, judge, price } = options;
  claimFolder(out, identity);
  const started = Date.now();
  const folder = (id: string): ReturnType<RunFolder['rollout']> => out.rollout(id);
  const grader = new EvalGrader({
    sandboxes: options.deps.sandboxes,
    folder,
    ...(judge && { judge }),
    missingSide: identity.missingSide,
    slots: identity.slots,
    price,
  });
  const pool = new RolloutPool(
    { ...options.deps, grader, folder },
    { concurrency: options.concurrency, perHarness: options.perHarness ?? {}, retries: 0 },
  );
  const planned = loaded.tasks.flatMap((task) => {
    const written = materialise(task, join(out.root, 'tasks', taskName(task.id)));
    return Array.from({ length: options.runs }, (_, run) => ({
      task: written,
      run,
      spec: specOf(written, run, options),
    }));
  });
  const outcomes = new Map<string, RunOutcome>();
  let version = '';
  const note = (one: Planned, result: RolloutResult): void => {
    version ||= result.harnessVersion;
    outcomes.set(
      one.spec.rolloutId,
      outcomeOf(one.run, result, readGrade(folder(one.spec.rolloutId)), price),
    );
    options.onProgress?.(progressOf(outcomes, planned.length, started));
  };
  const waiting: Planned[] = [];
  for (const one of planned) {
    const result = await finished(one, folder, grader, judge !== undefined, options.signal);
    if (result) note(one, result);
    else waiting.push(one);
  }
  if (waiting.length > 0) await options.prepare?.();
  const play = async (some: readonly Planned[]): Promise<void> => {
    for (let round = 0, left = some; left.length > 0 && !options.signal?.aborted; round++) {
      const byId = new Map(left.map((one) => [one.spec.rolloutId, one]));
      for (const { spec, task, run } of left) options.onPlanned?.(spec, task, run);
      const results = await pool.run(
        left.map(({ spec }) => spec),
        (result) => note(byId.get(result.rolloutId)!, result),
        options.signal ? { signal: options.signal } : {},
      );
      const failed = new Set(results.filter(machineryFailed).map(({ rolloutId }) => rolloutId));
      left = round < (options.retries ?? 2) ? left.filter(({ spec }) => failed.has(spec.rolloutId)) : [];
      for (const { spec } of left) rmSync(folder(spec.rolloutId).root, { recursive: true, force: true });
    }
  };
  const isSanity = ({ task }: Planned): boolean => options.sanity?.includes(task.id) ?? false;
  await play(waiting.filter(isSanity));
  const insane = options.sanity?.find((id) => {
    const scores = planned
      .filter(({ task }) => task.id === id)
      .map(({ spec }) => outcomes.get(spec.rolloutId)?.score);
    return scores.length > 0 && scores.every((score) => score === 0);
  });
  if (insane === undefined) await play(waiting.filter((one) => !isSanity(one)));
  await pool.close();
  const summary = summariseEvaluation(
    options,
    planned.map(({ task, spec }) => ({
      task,
      outcome: outcomes.get(spec.rolloutId) ?? null,
      grade: readGrade(folder(spec.rolloutId)),
    })),
    {
      harnessVersion: version,
      seconds: (Date.now() - started) / 1000,
      stoppedBy: insane ?? null,
    },
  );
  writeJsonAtomic(out.summary, summary);
  return summary;
}

/** Not the checker's or judge's failure: those are graded again, not run again. */
const machineryFailed = ({ fault }: RolloutResult): boolean =>
  fault !== null && INFRASTRUCTURE.has(fault.kind) && fault.kind !== 'verifier';

/** The result of a run that need not be run: null for one that must be. */
async function finished(
  { task, spec }: Planned,
  folder: (id: string) => ReturnType<RunFolder['rollout']>,
  grader: EvalGrader,
  canJudge: boolean,
  signal?: AbortSignal,
): Promise<RolloutResult | null> {
  const { root, result: file } = folder(spec.rolloutId);
  if (!existsSync(file)) return null;
  const result = readJson<RolloutResult>(file);
  const again = readGrade(folder(spec.rolloutId));
  // What a Ctrl-C ended says nothing of the policy: going on with an evaluation means to run it.
  if (machineryFailed(result) || result.fault?.kind === 'cancelled') {
    rmSync(root, { recursive: true, force: true });
    return null;
  }
  const ungraded =
    result.fault?.kind === 'verifier' ||
    (canJudge && again?.type !== 'automated' && again !== null && again.judge?.score == null);
  if (!ungraded) return result;
  const record = await grader.regrade(task.directory, spec.rolloutId, signal);
  if (record === null) {
    rmSync(root, { recursive: true, force: true });
    return null;
  }
  if (record.score === null) return result;
  const fault = result.timedOut
    ? { kind: 'timeout' as const, code: 'ROLLOUT_E_WALL', message: 'the harness ran into its limit' }
    : null;
  const mended: RolloutResult = { ...result, reward: record.score, scores: record.breakdown, fault };
  writeJsonAtomic(file, mended);
  return mended;
}

function specOf(task: WrittenTask, run: number, options: EvaluateOptions): RolloutSpec {
  const { identity, limits, timeoutMultiplier = 1, timeoutSeconds = 600 } = options;
  const rolloutId = rolloutName(task.id, run);
  return {
    rolloutId,
    task: task.directory,
    harness: identity.harness,
    group: taskName(task.id),
    seed: `${identity.seed}/${rolloutId}`,
    sampling: identity.sampling,
    ...(identity.thinking && { thinking: identity.thinking }),
    limits: { wallMs: (task.timeoutSeconds ?? timeoutSeconds) * 1000 * timeoutMultiplier, ...limits },
    labels: { eval: identity.format, run: String(run + 1) },
  };
}

/** An evaluation of something else must not be mixed into one. */
function claimFolder(out: RunFolder, identity: EvaluationIdentity): void {
  mkdirSync(out.root, { recursive: true });
  if (!existsSync(out.config)) {
    writeJsonAtomic(out.config, identity);
    return;
  }
  const before = readJson<Record<string, unknown>>(out.config);
  const key = Object.keys({ ...before, ...identity }).find((name) => {
    // A judge may be added or changed later: what it has judged is kept apart by its name in the cache and the grade.
    if (name === 'judge' || name === 'label' || name === 'missingSide' || name === 'slots') return false;
    return JSON.stringify(before[name]) !== JSON.stringify(identity[name as keyof EvaluationIdentity]);
  });
  if (key !== undefined) {
    throw new TreewardError(
      'RUN_E_DIFFERENT',
      `${out.root} holds an evaluation with ${key} = ${JSON.stringify(before[key])}, not ${JSON.stringify(identity[key as keyof EvaluationIdentity])}`,
      { data: { file: out.config, field: key }, hints: ['choose another --out', 'or remove the folder'] },
    );
  }
  writeJsonAtomic(out.config, identity);
}

function progressOf(
  outcomes: ReadonlyMap<string, RunOutcome>,
  total: number,
  started: number,
): EvaluationProgress {
  const all = [...outcomes.values()];
  const known = all.flatMap(({ score }) => (score === null ? [] : [score]));
  const seconds = (Date.now() - started) / 1000;
  return {
    done: all.length,
    total,
    graded: known.length,
    meanScore: known.length === 0 ? null : known.reduce((a, b) => a + b, 0) / known.length,
    costUsd: all.reduce((sum, { policyUsd, judgeUsd }) => sum + policyUsd + judgeUsd, 0),
    seconds,
    secondsLeft: all.length === 0 ? null : (seconds / all.length) * (total - all.length),
  };
}
