// What the operators' benches share: inputs that every run repeats, timing, and rows of the common format.
import { Bench } from 'tinybench';
import { getBackendInfo } from '@treeward/native';
import type { TorchPeer } from './testing/torch-peer.js';

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

export interface BenchContext {
  quick: boolean;
  /** Of a copy timed at the start; a row that claims a share of it measures `copy` beside itself. */
  copyBytesPerMs: number;
  /** PyTorch with as many threads as ours; absent where it isn't installed. */
  torch: TorchPeer | undefined;
}

/** An operator's bench: its rows at full or quick size. Throws when parity fails, before anything is timed. */
export type OperatorBench = (context: BenchContext) => Promise<Row[]>;

/** Milliseconds of one call: median and spread over n samples. */
export interface Timing {
  p20: number;
  p50: number;
  p80: number;
  n: number;
}

const { path: _path, ...backend } = getBackendInfo();

export function noise(seed = 12345): () => number {
  let state = seed;
  return () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
}

const source = new Float32Array(1 << 23).fill(1);
const target = new Float32Array(source.length).fill(2);
/** The machine's copy bandwidth, to be timed beside what is compared with it: 64 MiB of traffic, more than the caches hold. */
export const copy = (): void => target.set(source);
export const COPY_BYTES = 2 * source.byteLength;

const ROUNDS = 6;

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!;
}

/**
 * Times each call, in turns: rounds of tinybench over all of them, every other round in reverse, so that a machine that is
 * slower for a while is so for all. A call may return what TorchCase.run() does. `cold` empties the caches before each call
 * (of a torch case: pass it to `run`).
 */
export async function time(
  calls: Record<string, () => unknown>,
  quick: boolean,
  { cold = false }: { cold?: boolean } = {},
): Promise<Record<string, Timing>> {
  const samples = new Map(Object.keys(calls).map((name) => [name, [] as number[]]));
  for (let round = 0; round < ROUNDS; round++) {
    const bench = new Bench({
      time: (quick ? 100 : 500) / ROUNDS,
      iterations: 1,
      warmup: round === 0,
      warmupTime: quick ? 20 : 100,
      warmupIterations: 1,
      retainSamples: true,
      throws: true,
    });
    const entries = Object.entries(calls);
    for (const [name, call] of round % 2 === 0 ? entries : entries.reverse())
      bench.add(name, call, cold ? { beforeEach: copy } : {});
    await bench.run();
    for (const { name, result } of bench.tasks) {
      if (!('latency' in result) || result.latency.samples === undefined)
        throw new Error(`${name} was not measured`);
      samples.get(name)!.push(...result.latency.samples);
    }
  }
  return Object.fromEntries(
    [...samples].map(([name, all]) => {
      const sorted = [...Float64Array.from(all).sort()];
      const [p20, p50, p80] = [0.2, 0.5, 0.8].map((q) => quantile(sorted, q)) as [number, number, number];
      return [name, { p20, p50, p80, n: sorted.length }];
    }),
  );
}

export function row(
  name: string,
  timing: Timing,
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
    config: { ...config, stat: 'p50', p20: timing.p20, p80: timing.p80, backend },
  };
}

/** A share of what the machine can do. */
export function fractionRow(name: string, value: number, n: number, config: Record<string, unknown>): Row {
  return { name, value, unit: 'ratio', better: 'higher', n, config: { ...config, backend } };
}

/** The share of copy bandwidth that moving `bytes` amounts to; `copied` was timed beside it. */
export function streamRow(
  name: string,
  bytes: number,
  timing: Timing,
  copied: Timing,
  config: Record<string, unknown>,
): Row {
  const copyGbPerS = COPY_BYTES / copied.p50 / 1e6;
  return fractionRow(name, bytes / timing.p50 / 1e6 / copyGbPerS, timing.n, {
    ...config,
    bytes,
    copyGbPerS,
  });
}

/** @param strays how many entries may differ all the same: ratios so close to a bound that float32 decides either way */
export function assertClose(
  got: ArrayLike<number>,
  want: ArrayLike<number>,
  tolerance: number,
  what: string,
  strays = 0,
): void {
  for (let i = 0; i < want.length; i++) {
    if (!(Math.abs(got[i]! - want[i]!) <= tolerance * (1 + Math.abs(want[i]!))) && strays-- <= 0) {
      throw new Error(`parity of ${what} fails at ${i}: ${got[i]} against ${want[i]}; nothing timed`);
    }
  }
}
