import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { writeJsonAtomic } from './files.js';

/** One figure of a bench or experiment. */
export interface BenchRow {
  /** `area/what/size`; `…/vs_X` has `ratio` = X's time ÷ ours (higher is better), `…/of_X` has ours ÷ X's. */
  name: string;
  value: number;
  unit: string;
  better: 'lower' | 'higher';
  against?: string;
  ratio?: number;
  interval?: readonly [number, number];
  n: number;
  config?: Readonly<Record<string, unknown>>;
}

/** Where figures were taken: they mean little without it. */
export const benchMachine = (): Record<string, unknown> => ({
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
  memoryBytes: totalmem(),
  node: process.version,
  platform: `${process.platform}-${process.arch}`,
  /** Of the last minute: what else ran. */
  load: loadavg()[0],
});

/** Writes the rows of a bench in the one form that all of them have. @throws Error when the file cannot be written */
export function writeBenchRows(
  file: string,
  rows: readonly BenchRow[],
  more: { seeds?: readonly (string | number)[] } = {},
): void {
  writeJsonAtomic(file, { schema: 1, machine: benchMachine(), ...more, rows });
}
