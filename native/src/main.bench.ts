// All operators on this machine: npx nx run native:bench -- [--quick] [--out FILE] [--filter REGEXP]
// Method: parity first (no timing if it fails), median time per call, shares of the bandwidth of a copy timed in the same run.
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { causalGaeBench } from './causal-gae.bench.js';
import { linearLogprobBench } from './linear-logprob.bench.js';
import { policyLossBench, valueLossBench } from './policy-loss.bench.js';
import { fractionRow, time, type OperatorBench, type Row } from './harness.bench.js';
import { treeAttentionBench } from './tree-attention.bench.js';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    out: { type: 'string' },
    filter: { type: 'string', default: '' },
  },
});
const operators: Record<string, OperatorBench> = {
  policy_loss: policyLossBench,
  value_loss: valueLossBench,
  causal_gae: causalGaeBench,
  linear_logprob: linearLogprobBench,
  tree_attention: treeAttentionBench,
};

const source = new Float32Array(1 << 24).fill(1);
const target = new Float32Array(source.length);
const copy = (await time({ copy: () => target.set(source) }, values.quick))['copy']!;
const copyBytesPerMs = (2 * source.byteLength) / copy.p50;
const gbPerS = {
  ...fractionRow('machine/copy', copyBytesPerMs / 1e6, copy.n, { bytes: 2 * source.byteLength }),
  unit: 'GB/s',
};

const rows: Row[] = [gbPerS];
for (const [name, bench] of Object.entries(operators)) {
  if (new RegExp(values.filter).test(name))
    rows.push(...(await bench({ quick: values.quick, copyBytesPerMs })));
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
