import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { writeFileAtomic } from '@treeward/base';

/** Flat `area/name[/stat]` numbers (names: style.md). */
export type Metrics = Record<string, number>;

export interface MetricsSink {
  log(metrics: Metrics): void;
  close(): void;
}

/** One line per step, always on; a viewer can tail it. A non-finite value is dropped and counted, never written as null. */
export class JsonlSink implements MetricsSink {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  log(metrics: Metrics): void {
    const finite = Object.entries(metrics).filter(([, value]) => Number.isFinite(value));
    const dropped = Object.keys(metrics).length - finite.length;
    const line = Object.fromEntries(dropped ? [...finite, ['progress/dropped_values', dropped]] : finite);
    appendFileSync(this.#path, JSON.stringify(line) + '\n');
  }

  close(): void {
    // Every line is written when it is logged.
  }

  /** Drops the lines of steps after `step`: a resumed run writes them again. A torn last line goes too. */
  rewind(step: number): void {
    if (!existsSync(this.#path)) return;
    const kept = readMetrics(this.#path).filter((line) => (line['progress/step'] ?? 0) <= step);
    writeFileAtomic(this.#path, kept.map((line) => JSON.stringify(line) + '\n').join(''));
  }
}

export function readMetrics(path: string): Metrics[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as Metrics];
      } catch {
        return []; // the tail of a killed process
      }
    });
}

/** `prefix/{mean,min,max,p10,p90}` of some numbers; nothing at all when there are none (an average of nothing is not 0). */
export function spread(prefix: string, values: readonly number[]): Metrics {
  if (values.length === 0) return {};
  const sorted = [...values].sort((a, b) => a - b);
  const at = (q: number): number => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!;
  return {
    [`${prefix}/mean`]: mean(values),
    [`${prefix}/min`]: sorted[0]!,
    [`${prefix}/max`]: sorted.at(-1)!,
    [`${prefix}/p10`]: at(0.1),
    [`${prefix}/p90`]: at(0.9),
  };
}

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
