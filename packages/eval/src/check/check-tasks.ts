import type { SandboxProvider } from '@treeward/sandbox';
import { toPlainError } from '@treeward/base';
import type { LoadedTasks, TaskProblem } from '../types.js';
import { checkTask, type TaskCheck } from './check-task.js';

export interface TasksCheck {
  set: LoadedTasks['set'];
  tasks: TaskCheck[];
  /** Tasks that could not be read. */
  problems: TaskProblem[];
  ok: number;
  failed: number;
}

/** Checks every task, some at once; in the order of the set. */
export async function checkTasks(
  loaded: LoadedTasks,
  sandboxes: SandboxProvider,
  options: {
    concurrency?: number;
    onDone?: (check: TaskCheck, done: number) => void;
    signal?: AbortSignal;
  } = {},
): Promise<TasksCheck> {
  const checks = new Array<TaskCheck>(loaded.tasks.length);
  let next = 0;
  let done = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < loaded.tasks.length; at = next++) {
      options.signal?.throwIfAborted();
      const task = loaded.tasks[at]!;
      const check = await checkTask(task, sandboxes).catch((error: unknown) => failed(task.id, error));
      checks[at] = check;
      options.onDone?.(check, ++done);
    }
  };
  await Promise.all(Array.from({ length: options.concurrency ?? 2 }, worker));
  const ok = checks.filter((check) => check.ok).length;
  return {
    set: loaded.set,
    tasks: checks,
    problems: loaded.problems,
    ok,
    failed: checks.length - ok + loaded.problems.length,
  };
}

/** A check that could not be done is not passed. */
function failed(id: string, error: unknown): TaskCheck {
  const { code, message } = toPlainError(error);
  return {
    ...{
      id,
      ok: false,
      reference: null,
      untouched: null,
      empty: null,
      scaffold: null,
      wrong: [],
      vacuous: [],
      leaks: [],
    },
    ...{
      deterministic: true,
      network: false,
      problems: [`the check failed: ${code}: ${message.split('\n')[0]}`],
      warnings: [],
    },
  };
}
