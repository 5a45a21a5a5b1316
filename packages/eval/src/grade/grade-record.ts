import type { JudgeGrade } from '../judge/judge.js';
import type { Grading } from '../types.js';

/** What code said of a run. */
export interface CodeGrade {
  /** Null: not graded (`error`), never 0. */
  score: number | null;
  scores: Record<string, number>;
  /** The value of a sub-score named `reward`, which ClawGym's mean mixes with the others; null without one. */
  rewardKey: number | null;
  error: { code: string; message: string } | null;
}

/** `grade.json` of a rollout: how its score came about. */
export interface GradeRecord {
  schema: 1;
  task: string;
  type: Grading['type'];
  /** Null: not graded. */
  score: number | null;
  code: CodeGrade | null;
  judge: JudgeGrade | null;
  /** A hybrid that counts one side only, because the other gave no number. */
  renormalised: boolean;
  /** Sub-scores; of a hybrid with the prefixes `automated.` and `llm_judge.`. */
  breakdown: Record<string, number>;
  notes: string;
  error: { code: string; message: string } | null;
  seconds: number;
}

/** What to do with a hybrid of which one side gives no number. */
export type MissingSide = 'renormalise' | 'zero';

/** Puts both sides together. The rule for a missing side is named in the record: it changes what a mean means. */
export function combine(
  task: string,
  grading: Pick<Grading, 'type' | 'weights'>,
  sides: { code: CodeGrade | null; judge: JudgeGrade | null },
  missing: MissingSide,
  seconds: number,
): GradeRecord {
  const { code, judge } = sides;
  const prefixed = grading.type === 'hybrid';
  const breakdown = {
    ...entries(Object.entries(code?.scores ?? {}), prefixed ? 'automated.' : ''),
    ...entries(
      (judge?.criteria ?? []).map(({ name, score }) => [name, score]),
      prefixed ? 'llm_judge.' : '',
    ),
  };
  const a = code?.score ?? null;
  const j = judge?.score ?? null;
  const record = { schema: 1 as const, task, type: grading.type, code, judge, breakdown, seconds };
  const error = code?.error ?? judge?.error ?? null;
  const notes = [judge?.notes, code?.error?.message, judge?.error?.message].filter(Boolean).join(' | ');
  if (grading.type !== 'hybrid') {
    const score = grading.type === 'automated' ? a : j;
    return { ...record, score, renormalised: false, notes, error: score === null ? error : null };
  }
  const { automated, judge: weight } = grading.weights;
  if (a !== null && j !== null) {
    return {
      ...record,
      score: (a * automated + j * weight) / (automated + weight),
      renormalised: false,
      notes,
      error: null,
    };
  }
  if ((a === null && j === null) || missing === 'zero') {
    const score =
      a === null && j === null ? null : ((a ?? 0) * automated + (j ?? 0) * weight) / (automated + weight);
    return { ...record, score, renormalised: false, notes, error };
  }
  return { ...record, score: a ?? j, renormalised: true, notes, error };
}

/** Two criteria of one name keep both their scores. */
function entries(list: readonly (readonly [string, number])[], prefix: string): Record<string, number> {
  const out: Record<string, number> = {};
  for (const [name, score] of list) {
    let key = prefix + name;
    for (let n = 2; key in out; n++) key = `${prefix}${name} (${n})`;
    out[key] = score;
  }
  return out;
}
