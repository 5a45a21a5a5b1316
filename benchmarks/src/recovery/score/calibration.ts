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

/** Edges of a type's own rate that stand beside those of one kind of evidence: what is tried. */
const WEIGHTS = [2, 4, 8, 16, 32, 64, 128, 256];

interface Count {
  n: number;
  right: number;
}

/** Kind of evidence → behaviour → what was counted. */
type Kinds = Map<string, Map<string, Count>>;

/**
 * Per type and kind of evidence the share of right edges, drawn towards the type's share where there are few. How strongly
 * is chosen per type by leaving out one behaviour at a time: what is rare in the behaviours measured may be common, and of
 * another worth, in the next one.
 */
export function fitConfidence(judged: readonly Judged[]): Calibration {
  const types = new Map<EdgeType, Kinds>();
  for (const { type, evidence, behaviour, right } of judged) {
    const kinds = entry(types, type, () => new Map<string, Map<string, Count>>());
    const counts = entry(kinds, evidence, () => new Map<string, Count>());
    const count = entry(counts, behaviour, () => ({ n: 0, right: 0 }));
    count.n++;
    if (right) count.right++;
  }
  const table: Calibration['types'] = {};
  for (const [type, kinds] of [...types].sort(byName)) {
    const rate = rateOf(sum([...kinds.values()].flatMap((counts) => [...counts.values()])));
    const weight = bestWeight(kinds);
    // Rounded down: nothing that was counted is certain.
    const rounded = (p: number): number => Math.floor(p * 1e5) / 1e5;
    table[type] = { '*': rounded(rate) };
    for (const [kind, counts] of [...kinds].sort(byName)) {
      table[type][kind] = rounded(drawn(sum([...counts.values()]), rate, weight));
    }
  }
  return { version: 1, types: table };
}

/** The weight with the least Brier score on behaviours that were left out of the fit; of equals the greater. */
function bestWeight(kinds: Kinds): number {
  const behaviours = new Set([...kinds.values()].flatMap((counts) => [...counts.keys()]));
  const brier = WEIGHTS.map((weight) => {
    let total = 0;
    for (const left of behaviours) {
      const others = [...kinds.values()].map((counts) => {
        return sum([...counts].flatMap(([behaviour, count]) => (behaviour === left ? [] : [count])));
      });
      const rate = rateOf(sum(others));
      [...kinds.values()].forEach((counts, index) => {
        const { n, right } = counts.get(left) ?? { n: 0, right: 0 };
        const p = drawn(others[index]!, rate, weight);
        total += right * (1 - p) ** 2 + (n - right) * p ** 2;
      });
    }
    return total;
  });
  return WEIGHTS[brier.lastIndexOf(Math.min(...brier))]!;
}

const rateOf = ({ n, right }: Count): number => (right + 1) / (n + 2);

const drawn = ({ n, right }: Count, rate: number, weight: number): number =>
  (right + weight * rate) / (n + weight);

function sum(counts: readonly Count[]): Count {
  return counts.reduce((all, { n, right }) => ({ n: all.n + n, right: all.right + right }), {
    n: 0,
    right: 0,
  });
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

const byName = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1);
