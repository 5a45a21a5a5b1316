import type { OpenEndpoint } from '@treeward/gateway';
import type { ThinkingLevel } from '@treeward/harness-adapters';
import type { SandboxTier } from '@treeward/sandbox';
import type { FaultKind } from './faults.js';
import type { TaskMcp } from './task-mcp.js';

/** One run of the harness: it goes on with the conversation before it, or begins another one. */
export interface TaskSession {
  prompt: string;
  newSession: boolean;
}

/** A task directory in the ClawGym RL format, loaded. */
export interface Task {
  id: string;
  directory: string;
  /** The first prompt. */
  query: string;
  /** At least one; the first has `query`. */
  sessions: readonly TaskSession[];
  /** Absent when the task starts from an empty workspace. */
  inputFiles: string | null;
  rewardDirectory: string;
  metadata: Record<string, unknown>;
  /** Tools of its own, which the harness starts inside the sandbox. */
  mcp: TaskMcp | null;
}

export interface RolloutSpec {
  rolloutId: string;
  task: string;
  harness: string;
  /** Rollouts of one task × harness at one step share a group (one baseline). */
  group: string;
  seed: string;
  sampling: OpenEndpoint['sampling'];
  /** Whose temperature, top-p and top-k count: these, or the harness's own where it sends some. @default 'config' */
  samplingFrom?: 'config' | 'request';
  limits: { wallMs: number; maxTurns: number; maxTokens: number };
  /** What the harness asks of the model; `sampling.effort` is what a hosted model is asked. @default off */
  thinking?: ThinkingLevel;
  labels: Record<string, string>;
  /** Also grade the workspace as each call found it (`RolloutResult.states`). @default false */
  gradeStates?: boolean;
}

/** What a rollout's workspace was worth when each of its calls arrived. C calls, in order of arrival. */
export interface StateScores {
  /** In [0,1]; null where it is not known. */
  score_C: (number | null)[];
  /** Gradings made for it; states that another rollout of the task had left before are known already. */
  graded: number;
  /** Calls without a score because nobody looked in time, and because the look or its grading failed. */
  late: number;
  failed: number;
  /** Of the checkers. */
  cpuSeconds: number;
  ms: number;
}

export interface RolloutResult {
  rolloutId: string;
  task: string;
  harness: string;
  harnessVersion: string;
  group: string;
  /** Null when there is no number to trust (see `fault`). */
  reward: number | null;
  scores: Record<string, number>;
  fault: { kind: FaultKind; code: string; message: string } | null;
  /** Where it ran; absent when none was opened. `image`: the container's, by content. */
  sandbox?: { provider: string; tier: SandboxTier; image: string | null };
  exitCode: number | null;
  timedOut: boolean;
  calls: number;
  promptTokens: number;
  sampledTokens: number;
  malformed: number;
  /** Milliseconds by phase. */
  time: { total: number; start: number; harness: number; settle: number; verify: number };
  cpuSeconds: { harness: number; verifier: number };
  /** Where `RolloutSpec.gradeStates` asked for it and the rollout was judged. */
  states?: StateScores;
}

/** What serves the model, as far as it knows how it is. A child-process stack is one. */
export interface ModelHealth {
  /** Aborted, with the reason, when it is gone for good: no rollout can run any more. */
  readonly lost: AbortSignal;
  /** Milliseconds so far in which it was away. */
  awayMs(): number;
  /** Whether it answers now; one that hangs does not. */
  answers(): Promise<boolean>;
}

/** Hands rollouts to workers. Idempotent by `rolloutId`; results by reference (the rollout's folder). */
export interface RolloutQueue {
  run(
    specs: readonly RolloutSpec[],
    onDone: (result: RolloutResult) => void,
    options?: { signal?: AbortSignal },
  ): Promise<RolloutResult[]>;
  close(): Promise<void>;
}

export interface Grade {
  reward: number;
  scores: Record<string, number>;
  /** Why the reward is what it is, where the rollout kept the checker from judging its work. */
  fault?: { kind: 'policy'; code: string; message: string };
}

export interface Grader {
  /** @throws TreewardError VERIFIER_E_* when no number can be had */
  grade(
    task: Task,
    workspace: string,
    payload: Record<string, unknown>,
    /** `id` names the grading; many rollouts of one task are graded at once. */
    options: { id: string; signal?: AbortSignal },
  ): Promise<Grade & { cpuSeconds: number }>;
}
