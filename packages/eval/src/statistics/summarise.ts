import { bootstrapMean, bootstrapPaired, type BootstrapOptions, type Interval } from './bootstrap.js';
import { mean } from './mean.js';
import { passHatK } from './pass-k.js';
import { signTest, type SignTest } from './sign-test.js';
import { varianceSplit, type VarianceSplit } from './variance-split.js';

/** A task's scores, one per run; null: not graded. */
export interface TaskScores {
  id: string;
  category: string;
  scores: readonly (number | null)[];
}

export interface ScoreSummary {
  tasks: number;
  runs: number;
  /** Share of tasks, and of runs, with a number. */
  coverage: number;
  runCoverage: number;
  /** Mean over graded tasks of the mean of their graded runs, with a bootstrap interval over tasks. Null when nothing was graded. */
  meanScore: Interval | null;
  /** The same with every run that has no number counted as 0. Named apart: it mixes failures of machinery with those of the policy. */
  meanScoreMissingAsZero: number;
  threshold: number;
  /** Share of graded runs at or over the threshold, by task, then averaged: pass@1. */
  passRate: number | null;
  /** Unbiased pass^k for every k up to the number of runs, over the tasks that have that many. */
  passHat: { k: number; value: number; tasks: number }[];
  variance: VarianceSplit | null;
}

const graded = (scores: readonly (number | null)[]): number[] => scores.filter((score) => score !== null);

/** @param threshold score from which a run passes */
export function summarise(
  tasks: readonly TaskScores[],
  threshold: number,
  options: BootstrapOptions = {},
): ScoreSummary {
  const known = tasks.map(({ scores }) => graded(scores)).filter((scores) => scores.length > 0);
  const runs = tasks.reduce((sum, { scores }) => sum + scores.length, 0);
  const passes = known.map((scores) => scores.filter((score) => score >= threshold).length);
  const most = Math.max(0, ...known.map(({ length }) => length));
  return {
    tasks: tasks.length,
    runs,
    coverage: tasks.length === 0 ? 0 : known.length / tasks.length,
    runCoverage: runs === 0 ? 0 : known.flat().length / runs,
    meanScore: bootstrapMean(known.map(mean), options),
    meanScoreMissingAsZero:
      tasks.length === 0
        ? 0
        : mean(
            tasks.map(({ scores }) => (scores.length === 0 ? 0 : mean(scores.map((score) => score ?? 0)))),
          ),
    threshold,
    passRate: known.length === 0 ? null : mean(known.map((scores, at) => passes[at]! / scores.length)),
    passHat: Array.from({ length: most }, (_, index) => {
      const values = known.flatMap((scores, at) => passHatK(scores.length, passes[at]!, index + 1) ?? []);
      return { k: index + 1, value: mean(values), tasks: values.length };
    }),
    variance: varianceSplit(known),
  };
}

export interface PairedComparison {
  /** Tasks that both have a number for. */
  tasks: number;
  /** b − a, with its interval. Null without common tasks. */
  difference: Interval | null;
  sign: SignTest;
}

/** Two policies on the same tasks, by the mean of each task's graded runs. */
export function comparePaired(
  a: readonly TaskScores[],
  b: readonly TaskScores[],
  options: BootstrapOptions = {},
): PairedComparison {
  const second = new Map(b.map(({ id, scores }) => [id, graded(scores)]));
  const pairs = a.flatMap(({ id, scores }) => {
    const [one, two] = [graded(scores), second.get(id) ?? []];
    return one.length > 0 && two.length > 0 ? [[mean(one), mean(two)] as const] : [];
  });
  return { tasks: pairs.length, difference: bootstrapPaired(pairs, options), sign: signTest(pairs) };
}
