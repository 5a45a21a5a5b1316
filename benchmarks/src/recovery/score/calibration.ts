import type { Calibration, EdgeType } from '@treeward/tree-recovery';
import type { Judged } from './edge-score.js';

export interface Reliability {
  n: number;
  /** Expected calibration error over equal-mass bins. */
  error: number;
  brier: number;
  /** Brier score of the best constant: the share of right edges itself. */
  constantBrier: number;
}

const BINS = 10;

/** How well confidences match the share of edges that are right: 10 bins of equal mass. */
export function reliability(judged: readonly Pick<Judged, 'confidence' | 'right'>[]): Reliability {
  const n = judged.length;
  if (n === 0) return { n, error: 0, brier: 0, constantBrier: 0 };
  const sorted = [...judged].sort((a, b) => a.confidence - b.confidence);
  let error = 0;
  for (let bin = 0; bin < BINS; bin++) {
    const part = sorted.slice(Math.floor((bin * n) / BINS), Math.floor(((bin + 1) * n) / BINS));
    const gap = part.reduce((sum, { confidence, right }) => sum + confidence - Number(right), 0);
    error += Math.abs(gap) / n;
  }
  const rate = sorted.filter(({ right }) => right).length / n;
  const brier = sorted.reduce((sum, { confidence, right }) => sum + (confidence - Number(right)) ** 2, 0) / n;
  return { n, error, brier, constantBrier: rate * (1 - rate) };
}

/** Edges that stand behind a type's own rate, so that a rare kind of evidence is not taken at its word. */
const PRIOR_WEIGHT = 4;

/** Per type and kind of evidence the share of right edges, drawn towards the type's share where there are few. */
export function fitConfidence(judged: readonly Judged[]): Calibration {
  const groups = new Map<EdgeType, Map<string, { n: number; right: number }>>();
  for (const { type, evidence, right } of judged) {
    const kinds = groups.get(type) ?? new Map<string, { n: number; right: number }>();
    groups.set(type, kinds);
    for (const kind of [evidence, '*']) {
      const count = kinds.get(kind) ?? { n: 0, right: 0 };
      kinds.set(kind, { n: count.n + 1, right: count.right + Number(right) });
    }
  }
  const types: Calibration['types'] = {};
  for (const [type, kinds] of [...groups].sort(byName)) {
    const whole = kinds.get('*')!;
    const rate = (whole.right + 1) / (whole.n + 2);
    const table: Record<string, number> = {};
    for (const [kind, { n, right }] of [...kinds].sort(byName)) {
      const p = kind === '*' ? rate : (right + PRIOR_WEIGHT * rate) / (n + PRIOR_WEIGHT);
      // Rounded down: nothing that was counted is certain.
      table[kind] = Math.floor(p * 1e5) / 1e5;
    }
    types[type] = table;
  }
  return { version: 1, types };
}

const byName = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1);
