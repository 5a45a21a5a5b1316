import { mean } from './mean.js';

export interface VarianceSplit {
  /** Variance between the true means of tasks; 0 where the estimate would be negative. */
  task: number;
  /** Variance of runs of one task. */
  run: number;
  /** task ÷ (task + run): how alike two runs of one task are. Null when nothing varies. */
  icc: number | null;
  /** Standard error of the mean score if the same tasks were run again, and if other tasks were drawn. */
  seSameTasks: number;
  seNewTasks: number;
  tasks: number;
  runs: number;
}

/**
 * One-way random effects by analysis of variance, for unequal numbers of runs: score = task + run. Null without at least two tasks
 * and one task with two runs.
 */
export function varianceSplit(scores: readonly (readonly number[])[]): VarianceSplit | null {
  const groups = scores.filter((group) => group.length > 0);
  const tasks = groups.length;
  const runs = groups.reduce((sum, group) => sum + group.length, 0);
  if (tasks < 2 || runs === tasks) return null;
  const grand = mean(groups.flat());
  const within = groups.reduce((sum, group) => {
    const m = mean(group);
    return sum + group.reduce((inner, value) => inner + (value - m) ** 2, 0);
  }, 0);
  const between = groups.reduce((sum, group) => sum + group.length * (mean(group) - grand) ** 2, 0);
  const meanWithin = within / (runs - tasks);
  const size = (runs - groups.reduce((sum, { length }) => sum + length ** 2, 0) / runs) / (tasks - 1);
  const task = Math.max(0, (between / (tasks - 1) - meanWithin) / size);
  const seSame = Math.sqrt(groups.reduce((sum, { length }) => sum + meanWithin / length, 0)) / tasks;
  return {
    task,
    run: meanWithin,
    icc: task + meanWithin === 0 ? null : task / (task + meanWithin),
    seSameTasks: seSame,
    seNewTasks: Math.sqrt(task / tasks + seSame ** 2),
    tasks,
    runs,
  };
}
