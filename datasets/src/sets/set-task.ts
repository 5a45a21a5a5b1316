import { randomStream, TreewardError, type Random } from '@treeward/base';
import type { Domain, Step } from '../types.js';

/** What a plan does; `why` says, of a wrong one, which mistake it is. */
export interface Plan {
  steps: readonly Step[];
  finalMessage?: string;
}
export interface WrongPlan extends Plan {
  why: string;
}

/** What a family makes of a seed. */
export interface SetDraft {
  /** What the agent finds, by path. */
  files: Readonly<Record<string, string>>;
  /** Says everything that is checked: names, formats, order, rounding. */
  query: string;
  /** Two to four sentences for PinchBench's Expected Behavior. */
  expected: string;
  /** Values that the checker needs, as JSON: in Python they are called `TRUTH`. */
  truth: unknown;
  /**
   * Body of `def grade(transcript, workspace_path):` in Python, after `ws = Workspace(workspace_path)` (check-source.ts); returns
   * the named sub-scores, unweighted. On the untouched workspace each of them is 0.
   */
  check: string;
  /** Earns exactly 1. */
  reference: Plan;
  /** At least three plausible ones, each below 1. */
  wrong: Readonly<Record<string, WrongPlan>>;
}

export type Level = 'base' | 'hard';

export interface SetFamily {
  name: string;
  domain: Domain;
  level: Level;
  timeoutSeconds?: number;
  make(random: Random): SetDraft;
}

export interface SetTask extends SetDraft {
  /** `<family>-<seed>`. */
  id: string;
  family: string;
  domain: Domain;
  level: Level;
  seed: number;
  timeoutSeconds: number;
}

/**
 * The same family and seed give the same bytes everywhere.
 * @throws TreewardError DATASET_E_DRAFT when a family breaks the rules that need no checker to see
 */
export function makeSetTask(family: SetFamily, seed: number): SetTask {
  const draft = family.make(randomStream(seed, 'task-set', family.name));
  const id = `${family.name}-${seed}`;
  const refuse = (why: string): never => {
    throw new TreewardError('DATASET_E_DRAFT', `${id}: ${why}`, { data: { family: family.name, seed } });
  };
  if (Object.keys(draft.wrong).length < 3) refuse('fewer than three wrong plans');
  if (/^```/m.test(draft.check)) refuse('a fence in the checker would end the block it is pasted into');
  return {
    ...draft,
    id,
    family: family.name,
    domain: family.domain,
    level: family.level,
    seed,
    timeoutSeconds: family.timeoutSeconds ?? 300,
  };
}
