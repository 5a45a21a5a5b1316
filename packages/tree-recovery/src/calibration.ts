import { readFileSync } from 'node:fs';
import { TreewardError } from '@treeward/base';
import type { EdgeType } from './types.js';

/** Per edge type: probability that the edge is right, by its evidence codes sorted and joined by `+`; `*` for all others. */
export interface Calibration {
  version: 1;
  types: Partial<Record<EdgeType, Record<string, number>>>;
}

/** Where nothing was ever measured. */
const UNKNOWN = 0.5;

/** What contradicts an edge lowers the confidence of a pattern that was never measured. */
const DOUBTS: Readonly<Record<string, number>> = {
  'graft-elsewhere': 0.9,
  'tokens-elsewhere': 0.8,
  'tokens-renewed': 0.95,
  'reply-edited': 0.9,
  'reply-lost': 0.9,
  'header-against': 0.8,
  'transcript-against': 0.8,
  undelivered: 0.7,
  unextended: 0.9,
};

/**
 * Measured on simulated rollouts with known truth (`nx run benchmarks:recovery -- --calibrate`). It says how much an edge
 * is worth to credit, never whether a token trains.
 */
const committed = new URL('../src/calibration.json', import.meta.url);

/** @throws TreewardError TREE_E_CALIBRATION naming the file */
export function readCalibration(file: string | URL = committed): Calibration {
  const bad = (why: string): TreewardError =>
    new TreewardError('TREE_E_CALIBRATION', `${String(file)} is no table of confidences: ${why}`, {
      data: { file: String(file) },
      hints: ['write it anew: nx run benchmarks:recovery -- --calibrate'],
    });
  let value: Partial<Calibration>;
  try {
    value = JSON.parse(readFileSync(file, 'utf8')) as Partial<Calibration>;
  } catch (error) {
    throw bad(error instanceof Error ? error.message : String(error));
  }
  if (value.version !== 1 || typeof value.types !== 'object') throw bad('version 1 with `types` is expected');
  for (const [type, table] of Object.entries(value.types)) {
    for (const [pattern, probability] of Object.entries(table)) {
      if (!(probability >= 0 && probability <= 1)) throw bad(`${type} ${pattern} is ${String(probability)}`);
    }
  }
  return value as Calibration;
}

let table: Calibration | undefined;

/** Probability that an edge of this type with this evidence is right. */
export function confidenceOf(
  type: EdgeType,
  evidence: readonly string[],
  calibration: Calibration = (table ??= readCalibration()),
): number {
  const known = calibration.types[type];
  const measured = known?.[evidencePattern(evidence)];
  if (measured !== undefined) {
    return evidence.includes('transcript-against') ? measured * DOUBTS['transcript-against']! : measured;
  }
  // That nothing came of the earlier reply is what makes a retry of the next one.
  const doubts = type === 'retry' ? { ...DOUBTS, undelivered: 1, unextended: 1 } : DOUBTS;
  return evidence.reduce((p, code) => p * (doubts[code] ?? 1), known?.['*'] ?? UNKNOWN);
}

/** Seen in real rollouts only: they choose a cause, what it is worth is measured without them. */
const UNMEASURED: ReadonlySet<string> = new Set(['transcript', 'transcript-against', 'exec']);

/** The key of a pattern of evidence. */
export function evidencePattern(evidence: readonly string[]): string {
  return [...new Set(evidence)]
    .filter((code) => !UNMEASURED.has(code))
    .sort()
    .join('+');
}
