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
export { loadPinchbench, type LoadedPinchbench } from './pinchbench/load.js';
export { selectSuite, type Selection } from './pinchbench/suites.js';
export { writePinchbench } from './pinchbench/write.js';
export { writePinchbenchResults } from './pinchbench/results.js';
export { Judge, type JudgeOptions } from './judge/judge.js';
export { JudgeCache } from './judge/cache.js';
export { HttpJudge, type HttpJudgeOptions } from './judge/http-model.js';
export { ScriptedJudge, type ScriptedReply } from './judge/scripted-model.js';
export type { JudgeModel } from './judge/model.js';
export { loadHarborInImages } from './formats/harbor-images.js';
export { ImageProvider } from './run/image-provider.js';
export { evaluate, type EvaluateOptions, type EvaluationProgress } from './run/evaluate.js';
export { referenceOf, readSolution, type Solution, type SolutionStep } from './run/solution.js';
export type { EvaluationIdentity, EvaluationSummary } from './run/summary.js';
export { describeEvaluation } from './report/describe.js';
export type { Price } from './transcript/events.js';
export { checkTasks, type TasksCheck } from './check/check-tasks.js';
export type { TaskCheck } from './check/check-task.js';
export { loadHub, type HubOptions, type HubSet } from './hub/hub.js';
export { compareEvaluations, type Comparison } from './report/comparison.js';
export { describeComparison } from './report/describe-comparison.js';
export { comparisonSvg } from './report/svg.js';
export { comparisonHtml } from './report/html.js';
