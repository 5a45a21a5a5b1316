export type {
  Criterion,
  EvalTask,
  FormatName,
  Grading,
  LoadedTasks,
  Rubric,
  TaskFile,
  TaskProblem,
  TaskSession,
} from './types.js';
export { detectFormat, loadTasks, type LoadOptions } from './formats/load-tasks.js';
export { materialise, type WrittenTask } from './formats/materialise.js';
