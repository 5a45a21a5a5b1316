import { toPlainError } from '@treeward/base';
import type { EvalTask, TaskProblem } from '../types.js';

/** Reads each file on its own: one that cannot be read becomes a problem and does not stop the rest. */
export function collectTasks(
  files: readonly string[],
  load: (file: string) => EvalTask,
): { tasks: EvalTask[]; problems: TaskProblem[] } {
  const tasks: EvalTask[] = [];
  const problems: TaskProblem[] = [];
  const ids = new Map<string, string>();
  for (const file of files) {
    try {
      const task = load(file);
      const twin = ids.get(task.id);
      if (twin !== undefined) {
        problems.push({
          file,
          code: 'TASK_E_TWICE',
          message: `${file}: the id ${task.id} is taken by ${twin}`,
        });
        continue;
      }
      ids.set(task.id, file);
      tasks.push(task);
    } catch (error) {
      const { code, message } = toPlainError(error);
      problems.push({ file, code, message });
    }
  }
  return { tasks, problems };
}
