import { recoverTree, type RecordInput } from '@treeward/tree-recovery';
import { scoreEdges, totalCounts } from '../score/edge-score.js';
import type { Behaviour } from '../simulate/behaviour.js';
import { simulateRollout, type SimulatedRollout } from '../simulate/rollout.js';
import type { Row } from './rows.js';

/**
 * Time of recovery against the size of the rollout, one thread: CPU time of the process, because on a machine shared with
 * others wall time says more about the neighbours. Every rollout is recovered once for its correctness before it is timed.
 */
export async function scaleRows(behaviours: ScaleBehaviours, quick: boolean): Promise<Row[]> {
  const rows: Row[] = [];
  const long = await simulateRollout(behaviours.longContext, 'scale/long', { turns: 1000 });
  const seconds = measure(long, quick ? 1 : 5);
  const context = longestPrompt(long);
  rows.push({
    name: 'scale/calls1000_ctx64k_s',
    value: seconds,
    unit: 'cpu s',
    better: 'lower',
    n: quick ? 1 : 5,
    bar: 2,
    config: { calls: long.truth.calls.length, longestPrompt: context },
  });
  const sizes = quick ? [100, 1000, 10_000] : [100, 1000, 10_000, 100_000];
  const points: (readonly [number, number])[] = [];
  for (const size of sizes) {
    const rollout = await simulateRollout(behaviours.manyCalls, `scale/${size}`, {
      turns: Math.ceil(size / CALLS_PER_TURN),
    });
    const calls = rollout.truth.calls.length;
    const repeats = size >= 100_000 ? 1 : size >= 10_000 ? 3 : 15;
    const time = measure(rollout, repeats);
    points.push([Math.log(calls), Math.log(time)]);
    rows.push({
      name: `scale/calls${size}_s`,
      value: time,
      unit: 'cpu s',
      better: 'lower',
      n: repeats,
      config: { calls },
    });
  }
  rows.push({
    name: 'scale/time_exponent',
    value: slope(points),
    unit: '',
    better: 'lower',
    n: points.length,
    bar: 1.1,
    config: { sizes },
  });
  return rows;
}

export interface ScaleBehaviours {
  /** Compaction keeps contexts short: new tokens per call stay the same however many calls there are. */
  manyCalls: Behaviour;
  /** No compaction: the context of a thousand calls grows to 64K tokens. */
  longContext: Behaviour;
}

/** Calls that a turn of `manyCalls` makes on average, its agents' and retries included. */
const CALLS_PER_TURN = 2.2;

function measure({ record, truth }: SimulatedRollout, repeats: number): number {
  const input: RecordInput = record.input();
  const { predicted, right } = totalCounts(scoreEdges(truth, recoverTree(input).edges).counts);
  if (right < 0.9 * predicted || predicted === 0) {
    throw new Error(`only ${right} of ${predicted} edges are right: nothing is timed`);
  }
  const times = Array.from({ length: repeats }, () => {
    const start = process.cpuUsage();
    recoverTree(input);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1e6;
  });
  return times.sort((a, b) => a - b)[times.length >> 1]!;
}

function longestPrompt({ record }: SimulatedRollout): number {
  let longest = 0;
  for (const event of record.events) {
    if (event.type === 'call.prompt') longest = Math.max(longest, event.prompt.length);
  }
  return longest;
}

function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (k: 0 | 1): number => points.reduce((sum, point) => sum + point[k], 0) / points.length;
  const [mx, my] = [mean(0), mean(1)];
  const over = points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0);
  return over / points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
}
