import type { RolloutResult } from '@treeward/rollout';
import type { WrittenTask } from '../formats/materialise.js';
import { DOMAINS } from '../formats/domains.js';
import type { GradeRecord } from '../grade/grade-record.js';
import { agreement } from '../statistics/agreement.js';
import { summarise, type TaskScores } from '../statistics/summarise.js';
import { costOf, type Price } from '../transcript/events.js';
import type { EvaluateOptions } from './evaluate.js';
import type { EvaluationSummary, RunOutcome, TaskOutcome } from './summary.js';

/** A run as the reports need it. */
export function outcomeOf(
  run: number,
  result: RolloutResult,
  grade: GradeRecord | null,
  price: Price | null,
): RunOutcome {
  const { fault } = result;
  return {
    rolloutId: result.rolloutId,
    run,
    score: result.reward,
    rewardKey: grade?.code?.rewardKey ?? null,
    status: result.timedOut ? 'timeout' : fault === null ? 'success' : 'error',
    fault,
    renormalised: grade?.renormalised ?? false,
    seconds: result.time.total / 1000,
    calls: result.calls,
    promptTokens: result.promptTokens,
    sampledTokens: result.sampledTokens,
    policyUsd: costOf(price, result.promptTokens, result.sampledTokens),
    judgeUsd: grade?.judge?.costUsd ?? 0,
    judgeCached: grade?.judge?.cached ?? 0,
    cuts: grade?.judge?.cuts.length ?? 0,
  };
}

interface Graded {
  task: WrittenTask;
  /** Null: not run (stopped). */
  outcome: RunOutcome | null;
  grade: GradeRecord | null;
}

/** The domains in the paper's order, then what else there is. */
const categoriesOf = (tasks: readonly TaskOutcome[]): string[] => {
  const names = new Set(tasks.map(({ category }) => category));
  const known = DOMAINS.map(({ name }) => name).filter((name) => names.has(name));
  return [...known, ...[...names].filter((name) => name !== '' && !known.includes(name)).sort()];
};

export function summariseEvaluation(
  options: EvaluateOptions,
  graded: readonly Graded[],
  run: { harnessVersion: string; seconds: number; stoppedBy?: string | null },
): EvaluationSummary {
  const { identity, loaded, threshold } = options;
  const tasks = outcomesByTask(graded);
  const scores = (list: readonly TaskOutcome[]): TaskScores[] =>
    list.map(({ id, category, runs }) => ({ id, category, scores: runs.map(({ score }) => score) }));
  const summary = (list: readonly TaskOutcome[]): ReturnType<typeof summarise> =>
    summarise(scores(list), threshold, { seed: identity.seed });
  const outcomes = graded.flatMap(({ outcome }) => outcome ?? []);
  // A run that was cancelled leaves a result, but not one of the policy: an evaluation that was stopped is not a complete one.
  const missing = graded.filter(
    ({ outcome }) => outcome === null || outcome.fault?.kind === 'cancelled',
  ).length;
  const sum = (value: (outcome: RunOutcome) => number): number =>
    outcomes.reduce((all, one) => all + value(one), 0);
  const judged = graded.flatMap(({ grade }) => {
    const repeats = grade?.judge?.repeats ?? [];
    return repeats.length < 2 ? [] : repeats[0]!.map((_, at) => repeats.map((repeat) => repeat[at] ?? null));
  });
  const why = [
    options.note,
    loaded.problems.length > 0 ? `${loaded.problems.length} tasks could not be read` : null,
    run.stoppedBy ? `stopped: ${run.stoppedBy} scored 0, so nothing works` : null,
    missing > 0 ? `${missing} runs are missing` : null,
    options.complete ? null : `partial: ${tasks.length} tasks`,
  ].filter(Boolean);
  return {
    schema: 1,
    identity,
    set: loaded.set,
    harnessVersion: run.harnessVersion,
    runsPerTask: options.runs,
    threshold,
    complete: options.complete && missing === 0 && loaded.problems.length === 0,
    note: why.join('; ') || null,
    problems: loaded.problems,
    tasks,
    all: summary(tasks),
    frozen: summary(tasks.filter(({ live, quarantined }) => !live && quarantined === null)),
    categories: categoriesOf(tasks).map((name) => ({
      name,
      summary: summary(tasks.filter(({ category }) => category === name)),
    })),
    agreement: judged.length > 0 ? agreement(judged) : null,
    renormalised: outcomes.filter(({ renormalised }) => renormalised).length,
    cost: {
      policyUsd: sum(({ policyUsd }) => policyUsd),
      judgeUsd: sum(({ judgeUsd }) => judgeUsd),
      judgeCached: sum(({ judgeCached }) => judgeCached),
      promptTokens: sum(({ promptTokens }) => promptTokens),
      sampledTokens: sum(({ sampledTokens }) => sampledTokens),
    },
    seconds: run.seconds,
  };
}

function outcomesByTask(graded: readonly Graded[]): TaskOutcome[] {
  const byId = new Map<string, TaskOutcome>();
  for (const { task, outcome } of graded) {
    const { id, name, category, grading, live, quarantined } = task;
    const known = byId.get(id) ?? { id, name, category, type: grading.type, live, quarantined, runs: [] };
    byId.set(id, known);
    if (outcome) known.runs.push(outcome);
  }
  return [...byId.values()];
}
