// All operators on this machine: npx nx run native:bench -- [--quick] [--out FILE] [--filter REGEXP] [--torch | --no-torch]
// Method: parity first (no timing if it fails); what is compared is timed in turns; medians; shares of the bandwidth of a copy
// timed beside. PyTorch's rows need the environment of tools/python-bench.mjs: --torch insists on it, --no-torch does without.
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { getBackendInfo } from '@treeward/native';
import { causalGaeBench } from './causal-gae.bench.js';
import { adamwBench, rmsNormBench, ropeBench, swigluBench } from './fused.bench.js';
import { linearLogprobBench } from './linear-logprob.bench.js';
import { packTreesBench } from './pack-trees.bench.js';
import { policyLossBench } from './policy-loss.bench.js';
import { copy, COPY_BYTES, fractionRow, time, type OperatorBench, type Row } from './harness.bench.js';
import { treeAttentionBench } from './tree-attention.bench.js';
import { valueLossBench } from './value-loss.bench.js';
import { findTorchPython, startTorchPeer, TORCH_HINT } from './testing/torch-peer.js';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    out: { type: 'string' },
    filter: { type: 'string', default: '' },
    torch: { type: 'boolean', default: false },
    'no-torch': { type: 'boolean', default: false },
  },
});
const operators: Record<string, OperatorBench> = {
  policy_loss: policyLossBench,
  value_loss: valueLossBench,
  causal_gae: causalGaeBench,
  linear_logprob: linearLogprobBench,
  tree_attention: treeAttentionBench,
  rms_norm: rmsNormBench,
  rope: ropeBench,
  swiglu: swigluBench,
  adamw: adamwBench,
  pack_trees: packTreesBench,
};

const python = values['no-torch'] ? undefined : findTorchPython();
if (python === undefined && values.torch) {
  process.stderr.write(`${TORCH_HINT}\n`);
  process.exit(1);
}
if (python === undefined && !values['no-torch']) process.stderr.write(`${TORCH_HINT}\n`);
const { threads } = getBackendInfo();
const torch = python === undefined ? undefined : await startTorchPeer({ python, threads });

const copied = (await time({ copy }, values.quick))['copy']!;
const copyBytesPerMs = COPY_BYTES / copied.p50;
const gbPerS = {
  ...fractionRow('machine/copy', copyBytesPerMs / 1e6, copied.n, { bytes: COPY_BYTES }),
  unit: 'GB/s',
};

const rows: Row[] = [gbPerS];
try {
  for (const [name, bench] of Object.entries(operators)) {
    if (new RegExp(values.filter).test(name))
      rows.push(...(await bench({ quick: values.quick, copyBytesPerMs, torch })));
  }
} finally {
  await torch?.close();
}
const report = {
  schema: 1,
  machine: {
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    memory_gib: Math.round(totalmem() / 2 ** 30),
    load: loadavg()[0],
    threads,
    ...(torch ? { peer: torch.versions } : {}),
  },
  rows,
};
if (values.out) writeFileSync(values.out, JSON.stringify(report, null, 2) + '\n');
process.stdout.write(JSON.stringify(report, null, 2) + '\n');
