// What the operators' benches share: inputs that every run repeats, timing, and rows of the common format.
import { Bench } from 'tinybench';
import { getBackendInfo } from '@treeward/native';

export interface Row {
  name: string;
  value: number;
  unit: string;
  better: 'lower' | 'higher';
  against?: string;
  ratio?: number;
  n: number;
  config: Record<string, unknown>;
}

/** An operator's bench: its rows at full or quick size. Throws when parity fails, before anything is timed. */
export type OperatorBench = (context: { quick: boolean; copyBytesPerMs: number }) => Promise<Row[]>;

const { path: _path, ...backend } = getBackendInfo();

export function noise(seed = 12345): () => number {
  let state = seed;
  return () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
}

/** Median milliseconds of each call, taken in turns. */
export async function time(
  calls: Record<string, () => unknown>,
  quick: boolean,
): Promise<Record<string, { p50: number; n: number }>> {
  const bench = new Bench({ time: quick ? 100 : 500, warmupTime: quick ? 20 : 100 });
  for (const [name, call] of Object.entries(calls)) bench.add(name, call);
  await bench.run();
  return Object.fromEntries(
    bench.tasks.map(({ name, result }) => {
      if (!result || !('latency' in result)) throw new Error(`${name} was not measured`);
      return [name, { p50: result.latency.p50, n: result.latency.samplesCount }];
    }),
  );
}

export function row(
  name: string,
  timing: { p50: number; n: number },
  config: Record<string, unknown>,
  versus?: { against: string; p50: number },
): Row {
  return {
    name,
    value: timing.p50,
    unit: 'ms',
    better: 'lower',
    ...(versus ? { against: versus.against, ratio: versus.p50 / timing.p50 } : {}),
    n: timing.n,
    config: { ...config, stat: 'p50', backend },
  };
}

/** The share of this machine's copy bandwidth that `bytes` in the given time amount to. */
export function fractionRow(name: string, value: number, n: number, config: Record<string, unknown>): Row {
  return { name, value, unit: 'ratio', better: 'higher', n, config: { ...config, backend } };
}

export function assertClose(
  got: ArrayLike<number>,
  want: ArrayLike<number>,
  tolerance: number,
  what: string,
): void {
  for (let i = 0; i < want.length; i++) {
    if (!(Math.abs(got[i]! - want[i]!) <= tolerance * (1 + Math.abs(want[i]!)))) {
      throw new Error(`parity of ${what} fails at ${i}: ${got[i]} against ${want[i]}; nothing timed`);
    }
  }
}
