/** Where a task came from; decides how its folder is read and how its judge is asked. */
export type FormatName = 'clawgym' | 'pinchbench' | 'jobbench' | 'officeqa' | 'harbor';

/** A file that a task puts somewhere. `from`: copied from this machine, byte for byte. Paths are relative, with `/`. */
export interface TaskFile {
  path: string;
  content: string | Uint8Array | { from: string };
}

/** One conversation of a task that has several. The workspace and HOME stay between them. */
export interface TaskSession {
  id: string;
  prompt: string;
  /** A conversation of its own; otherwise it goes on with the one before. */
  newSession: boolean;
}

/** One thing a judge decides. The judge sees it as `criterion_<n>`, counted from 1. */
export interface Criterion {
  name: string;
  text: string;
  /** Scores the judge may give, ascending; null: any number in [0,1]. */
  anchors: number[] | null;
  /** Share in a weighted mean; need not sum to 1. */
  weight: number;
  /** The file it is about, relative to the workspace. */
  filePath: string | null;
}

export interface Rubric {
  criteria: Criterion[];
  /** As the task has it; shown to people, not to the judge. */
  source: string;
  /** Criteria of one group earn the group's weight together or not at all (JobBench). */
  groups: { weight: number; criteria: number[] }[] | null;
}

export interface Grading {
  type: 'automated' | 'judge' | 'hybrid';
  weights: { automated: number; judge: number };
  /** Files of `reward/`, its entry `reward.sh` among them. They enter a sandbox only after the agent has ended. */
  reward: TaskFile[];
  rubric: Rubric | null;
  /** What a good answer does, for the judge. Empty when the task does not say. */
  expectedBehavior: string;
  /** A known answer, compared with the final message (OfficeQA). */
  answer: { truth: string; tolerance: number } | null;
  /** Milliseconds the checker may take. */
  timeoutMs: number;
}

/** A task of any format, as the rest of this package knows it. */
export interface EvalTask {
  id: string;
  name: string;
  format: FormatName;
  /** One of the six domains (ClawGym) or the format's own category; empty when it says none. */
  category: string;
  /** What the agent is asked. Of several sessions: the first one's prompt. */
  query: string;
  sessions: TaskSession[] | null;
  /** Seconds the agent has, all sessions together; null: the format does not say. */
  timeoutSeconds: number | null;
  files: TaskFile[];
  grading: Grading;
  /** Depends on facts of today. */
  live: boolean;
  /** Why its score should not count. */
  quarantined: string | null;
  metadata: Record<string, unknown>;
  /** Own tools: a folder in the form of packages/rollout's `mcp/`. */
  mcp: string | null;
  /** Where the task lies on this machine. */
  source: string;
  /** What was read otherwise than written, in words. */
  warnings: string[];
}

/** A task that could not be read. Never dropped silently: a suite with one is not complete. */
export interface TaskProblem {
  file: string;
  code: string;
  message: string;
}

export interface LoadedTasks {
  tasks: EvalTask[];
  problems: TaskProblem[];
  /** Version, commit and licence of the set, as far as it says. */
  set: { name: string; version: string | null; licence: string | null };
}
