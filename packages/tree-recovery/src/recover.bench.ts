// Time of recovery from a record in memory, one thread. Method: check the tree first (no timing if it is wrong), then the
// median CPU time of the process over repeated runs (garbage collector threads included): on a machine shared with others
// wall time says more about the neighbours. The exponent is the slope of log time over log calls at constant new tokens per call.
// Run: npx nx run tree-recovery:bench -- [--quick] [--out FILE]
import { parseArgs } from 'node:util';
import { writeBenchRows, type BenchRow } from '@treeward/base';
import { recoverTree, summarise } from '@treeward/tree-recovery';
import { chainRecord, type ChainOptions } from './testing/chain-record.js';

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, out: { type: 'string' } },
});

function measure(options: ChainOptions, repeats: number): { seconds: number; times: number[] } {
  const record = chainRecord(options);
  const summary = summarise(recoverTree(record));
  if (summary.trainedTokens !== options.calls * options.sampled || summary.issues.fatal > 0) {
    throw new Error(`wrong tree for ${JSON.stringify(options)}: ${JSON.stringify(summary)}; nothing timed`);
  }
  const times = Array.from({ length: repeats }, () => {
    const start = process.cpuUsage();
    recoverTree(record);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1e6;
  }).sort((a, b) => a - b);
  return { seconds: times[times.length >> 1]!, times };
}

const rows: BenchRow[] = [];
const add = (name: string, value: number, unit: string, n: number, config: BenchRow['config']): void => {
  rows.push({ name, value, unit, better: 'lower', n, ...(config ? { config } : {}) });
  console.log(`${name.padEnd(34)} ${value.toPrecision(3).padStart(9)} ${unit}  n=${n}`);
};

// 1000 calls whose context grows to 64K tokens.
const chain = { calls: 1000, appended: 48, sampled: 16, retryEvery: 0, cutEvery: 0 };
const long = measure(chain, values.quick ? 3 : 9);
add('scale/calls1000_ctx64k_s', long.seconds, 'cpu s', long.times.length, chain);
const bushy = { ...chain, retryEvery: 7, cutEvery: 50 };
const forked = measure(bushy, values.quick ? 3 : 9);
add('scale/calls1000_forked_s', forked.seconds, 'cpu s', forked.times.length, bushy);

const sizes = values.quick ? [100, 1000, 10_000] : [100, 1000, 10_000, 100_000];
const points = sizes.map((calls) => {
  const options = { calls, appended: 24, sampled: 8, retryEvery: 7, cutEvery: 50 };
  const repeats = calls >= 100_000 ? 3 : calls >= 10_000 ? 5 : 15;
  const { seconds } = measure(options, repeats);
  add(`scale/calls${calls}_s`, seconds, 'cpu s', repeats, options);
  return [Math.log(calls), Math.log(seconds)] as const;
});
const mean = (k: 0 | 1): number => points.reduce((sum, point) => sum + point[k], 0) / points.length;
const [mx, my] = [mean(0), mean(1)];
const slope =
  points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0) /
  points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
add('scale/time_exponent', slope, '', points.length, { sizes });

if (values.out) writeBenchRows(values.out, rows);
