import { TreewardError } from '@treeward/base';
import type { Grade } from './types.js';

export interface Verdict extends Grade {
  /** Every line that alone would have been a verdict, the last one included: a checker prints one. */
  candidates: number[];
}

/**
 * The checker's verdict from what it printed: the last line is a number in [0,1]; a JSON object on an earlier line holds
 * the named sub-scores.
 * @throws TreewardError VERIFIER_E_NO_NUMBER, VERIFIER_E_RANGE
 */
export function parseVerdict(stdout: string, checker: string): Verdict {
  const lines = stdout.split('\n').filter((line) => line.trim() !== '');
  const last = lines.at(-1)?.trim() ?? '';
  const reward = last === '' ? Number.NaN : Number(last);
  if (!Number.isFinite(reward)) {
    throw new TreewardError(
      'VERIFIER_E_NO_NUMBER',
      `${checker}: its last output line is not a number: ${JSON.stringify(last.slice(0, 120))}`,
      {
        data: { file: checker },
        hints: ['print one number in [0,1] as the last line; everything else before it'],
      },
    );
  }
  if (!inRange(reward)) {
    throw new TreewardError('VERIFIER_E_RANGE', `${checker}: reward ${reward} is outside [0,1]`, {
      data: { file: checker },
    });
  }
  const scores: Record<string, number> = {};
  for (const line of lines.slice(0, -1)) {
    if (!line.trim().startsWith('{')) continue;
    try {
      for (const [name, value] of Object.entries(JSON.parse(line) as Record<string, unknown>)) {
        if (typeof value === 'number' || typeof value === 'boolean') scores[name] = Number(value);
      }
    } catch {
      // Not JSON: a line the checker printed for people.
    }
  }
  return { reward, scores, candidates: lines.map(Number).filter(inRange) };
}

const inRange = (value: number): boolean => value >= 0 && value <= 1;
