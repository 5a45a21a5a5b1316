import { folderOf } from './tasks.js';
import { RunFolder } from '@treeward/base';
import { summariseEvaluation } from '../run/outcome.js';
import type { EvaluateOptions } from '../run/evaluate.js';
import type { EvaluationIdentity, EvaluationSummary, RunOutcome } from '../run/summary.js';
import type { WrittenTask } from '../formats/materialise.js';

export const identity = (parts: Partial<EvaluationIdentity> = {}): EvaluationIdentity => ({
  format: 'clawgym',
  tasks: '/t',
  suite: 'all',
  harness: 'agent-loop',
  engine: 'noop',
  label: 'base',
  seed: '0',
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 10 },
  judge: null,
  missingSide: 'renormalise',
  slots: 'full',
  ...parts,
});

export const outcome = (run: number, score: number | null, parts: Partial<RunOutcome> = {}): RunOutcome => ({
  rolloutId: `r${run}`,
  run,
  score,
  rewardKey: null,
  status: score === null ? 'error' : 'success',
  fault: score === null ? { kind: 'verifier', code: 'VERIFIER_E_NOT_GRADED', message: 'no number' } : null,
  renormalised: false,
  seconds: 2,
  calls: 1,
  promptTokens: 100,
  sampledTokens: 10,
  policyUsd: 0.001,
  judgeUsd: 0.002,
  judgeCached: 0,
  cuts: 0,
  ...parts,
});

export interface InventedTask {
  id: string;
  scores: (number | null)[];
  category?: string;
  live?: boolean;
  quarantined?: string;
}

/** The summary of an evaluation with these scores. */
export function summaryOf(
  tasks: readonly InventedTask[],
  parts: {
    identity?: Partial<EvaluationIdentity>;
    complete?: boolean;
    note?: string;
    problems?: EvaluationSummary['problems'];
    /** Why a run without a score has none. */
    fault?: RunOutcome['fault'];
  } = {},
): EvaluationSummary {
  const runs = Math.max(0, ...tasks.map(({ scores }) => scores.length));
  const options = {
    identity: identity(parts.identity),
    loaded: { tasks: [], problems: parts.problems ?? [], set: { name: 'set', version: '1', licence: 'MIT' } },
    complete: parts.complete ?? true,
    note: parts.note ?? null,
    out: new RunFolder(folderOf({})),
    runs,
    threshold: 1,
  } as unknown as EvaluateOptions;
  const graded = tasks.flatMap(({ id, scores, category = '', live = false, quarantined = null }) =>
    scores.map((score, run) => ({
      task: {
        id,
        name: id,
        category,
        live,
        quarantined,
        grading: { type: 'automated' },
      } as unknown as WrittenTask,
      outcome: outcome(run, score, {
        rolloutId: `${id}--r${run + 1}`,
        ...(score === null && parts.fault && { fault: parts.fault }),
      }),
      grade: null,
    })),
  );
  return summariseEvaluation(options, graded, { harnessVersion: '1', seconds: 1 });
}
