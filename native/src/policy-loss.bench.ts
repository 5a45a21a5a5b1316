// policyLoss against the float64 TypeScript reference, on one thread. Method: parity first (no timing if it fails), inputs
// near on-policy as in training, median time per call over fixed time; ratio = reference / kernel. Not like for like: only the kernel
// checks its inputs and computes the statistics.
// Run: npx nx run native:bench -- [--quick] [--out FILE]
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { Bench } from 'tinybench';
// By name: this file is compiled to out-tsc/, and what is timed is the built package.
import { getBackendInfo, policyLoss, type PolicyLossInput, type PolicyLossOptions } from '@treeward/native';
import { policyLossReference } from './testing/policy-loss-reference.js';

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, out: { type: 'string' } },
});
const sizes_T = values.quick ? [2_000] : [2_000, 8_000, 64_000, 512_000];
const options: PolicyLossOptions = { clipLow: 0.2, clipHigh: 0.28, truncation: 2, normaliser: 1000 };

function inputs(T: number): PolicyLossInput {
  let state = 12345;
  const uniform = (): number => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  const logpOld_T = Float32Array.from({ length: T }, () => -4 * uniform());
  return {
    logpOld_T,
    logp_T: logpOld_T.map((x) => x + 0.6 * (uniform() - 0.5)),
    logpRollout_T: logpOld_T.map((x) => x + 0.1 * (uniform() - 0.5)),
    advantages_T: logpOld_T.map(() => 2 * uniform() - 1),
    mask_T: logpOld_T.map(() => (uniform() < 0.3 ? 1 : 0)),
  };
}

const { path: _path, ...backend } = getBackendInfo();
const rows: object[] = [];
for (const T of sizes_T) {
  const input = inputs(T);
  const [got, want] = [policyLoss(input, options), policyLossReference(input, options)];
  if (!(Math.abs(got.loss - want.loss) <= 1e-9 * Math.abs(want.loss) + 1e-12)) {
    throw new Error(`parity fails at T=${T}: ${got.loss} against ${want.loss}; nothing timed`);
  }
  const bench = new Bench({ time: values.quick ? 100 : 500 });
  let sink = 0;
  bench.add('native', () => {
    sink += policyLoss(input, options).loss;
  });
  bench.add('reference', () => {
    sink += policyLossReference(input, options).loss;
  });
  await bench.run();
  if (!Number.isFinite(sink)) throw new Error('results were not finite');
  const timing = (name: string): { p50: number; samples: number } => {
    const result = bench.getTask(name)?.result;
    if (!result || !('latency' in result)) throw new Error(`${name} was not measured`);
    return { p50: result.latency.p50, samples: result.latency.samplesCount };
  };
  const [native, reference] = [timing('native'), timing('reference')];
  rows.push({
    name: `policy_loss/T=${T}`,
    value: native.p50,
    unit: 'ms',
    better: 'lower',
    against: 'f64 TypeScript reference',
    ratio: reference.p50 / native.p50,
    n: native.samples,
    config: { T, masked_in: got.stats.tokens, stat: 'p50', backend },
  });
}
const report = {
  schema: 1,
  machine: {
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    memory_gib: Math.round(totalmem() / 2 ** 30),
    load: loadavg()[0],
  },
  rows,
};
if (values.out) writeFileSync(values.out, JSON.stringify(report, null, 2) + '\n');
process.stdout.write(JSON.stringify(report, null, 2) + '\n');
