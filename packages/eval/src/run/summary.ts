import type { ThinkingLevel } from '@treeward/harness-adapters';
import type { RolloutSpec } from '@treeward/rollout';
import type { ScoreSummary } from '../statistics/summarise.js';
import type { Agreement } from '../statistics/agreement.js';
import type { FormatName, TaskProblem } from '../types.js';

/** What an evaluation is of; two runs into one folder must agree in it. */
export interface EvaluationIdentity {
  format: FormatName;
  /** Where the tasks came from, as given. */
  tasks: string;
  suite: string;
  harness: string;
  /** As given on the command line. */
  engine: string;
  /** What a report calls it. */
  label: string;
  seed: string;
  sampling: RolloutSpec['sampling'];
  /** What the harness asks of the model; absent: nothing. */
  thinking?: ThinkingLevel;
  judge: string | null;
  missingSide: 'renormalise' | 'zero';
  slots: 'full' | 'released';
}

export interface RunOutcome {
  rolloutId: string;
  run: number;
  score: number | null;
  /** Mean of the key `reward` where a checker has one. */
  rewardKey: number | null;
  status: 'success' | 'timeout' | 'error';
  fault: { kind: string; code: string; message: string } | null;
  renormalised: boolean;
  seconds: number;
  calls: number;
  promptTokens: number;
  sampledTokens: number;
  policyUsd: number;
  judgeUsd: number;
  judgeCached: number;
  /** Files cut in the judge's prompt. */
  cuts: number;
}

export interface TaskOutcome {
  id: string;
  name: string;
  category: string;
  type: 'automated' | 'judge' | 'hybrid';
  live: boolean;
  quarantined: string | null;
  runs: RunOutcome[];
}

/** `summary.json` of an evaluation: everything that `compare` and the reports read. */
export interface EvaluationSummary {
  schema: 1;
  identity: EvaluationIdentity;
  set: { name: string; version: string | null; licence: string | null };
  harnessVersion: string;
  runsPerTask: number;
  threshold: number;
  /** False for a part of a suite, or while runs are missing; `note` says why. */
  complete: boolean;
  note: string | null;
  problems: TaskProblem[];
  tasks: TaskOutcome[];
  all: ScoreSummary;
  /** Without tasks that are live or quarantined. */
  frozen: ScoreSummary;
  categories: { name: string; summary: ScoreSummary }[];
  /** Of repeated judgements; null when nothing was judged twice. */
  agreement: Agreement | null;
  renormalised: number;
  cost: {
    policyUsd: number;
    judgeUsd: number;
    judgeCached: number;
    promptTokens: number;
    sampledTokens: number;
  };
  seconds: number;
}
