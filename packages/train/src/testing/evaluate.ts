import { expect } from 'vitest';
import type { EvaluationSummary } from '@treeward/eval';
import { evalCommand } from '../eval/eval-command.js';
import { runCommand, type CommandRun } from './run-command.js';

export const runEval = (...args: string[]): Promise<CommandRun> => runCommand(evalCommand(), args);

/** Runs an evaluation to its end; fails unless it ends well. */
export async function evaluate(
  format: string,
  tasks: string,
  out: string,
  ...more: string[]
): Promise<EvaluationSummary> {
  const { code, stdout, error } = await runEval(format, '--tasks', tasks, '--out', out, '--json', ...more);
  expect([code, error]).toEqual([0, null]);
  return JSON.parse(stdout) as EvaluationSummary;
}

export const scoresOf = ({ tasks }: EvaluationSummary): (number | null)[] =>
  tasks.flatMap(({ runs }) => runs.map(({ score }) => score));
