// Tokens per second of an SFT step: d 128, 4 layers, vocabulary 768, 64 rows of 90 to 170 tokens (about 8 K), Muon. Method:
// the loss must fall on a fixed batch first (nothing is reported if it does not); then the median step by wall time and by
// the process's CPU time. On a machine shared with others, wall time says more about the neighbours. TensorFlow takes its
// number of threads once per process, so every row is a process of its own.
// Run: npx nx run learner:bench -- [--quick] [--out FILE]
import { fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { randomStream } from '@treeward/base';
import { embeddedConfig, TfjsLearner } from '@treeward/learner';
import { packRows } from './testing/batches.js';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    out: { type: 'string' },
    worker: { type: 'string' },
    micro: { type: 'string', default: '2048' },
    steps: { type: 'string' },
  },
});
const steps = Number(values.steps ?? (values.quick ? 3 : 12));

interface Measured {
  wall: number;
  cpu: number;
  n: number;
}

async function work(threads: number): Promise<Measured> {
  const random = randomStream('sft-bench');
  const rows = Array.from({ length: 64 }, () =>
    Array.from({ length: 90 + random.below(80) }, (_, i) => ((i % 7) * 30 + random.below(3)) % 768),
  );
  const batch = packRows(
    rows,
    rows.map((row) => row.map((_, i) => (i === 0 ? 0 : i % 4 === 0 ? 1 : 0.1))),
  );
  const learner = await TfjsLearner.open({
    init: { config: embeddedConfig(), seed: 1 },
    optimizer: { kind: 'muon', betas: [0.9, 0.98], eps: 1e-9 },
    threads,
    microBatchTokens: Number(values.micro),
  });
  const losses: number[] = [];
  const times: Measured[] = [];
  for (let i = 0; i < steps + 1; i++) {
    const wall = performance.now();
    const cpu = process.cpuUsage();
    const metrics = await learner.update(batch, { kind: 'sft' }, { lr: 1e-3, maxGradNorm: 1 });
    const { user, system } = process.cpuUsage(cpu);
    losses.push(metrics['loss/sft']!);
    if (i) times.push({ wall: (performance.now() - wall) / 1000, cpu: (user + system) / 1e6, n: 1 });
  }
  if (!(losses[steps]! < losses[0]!)) throw new Error(`the loss did not fall: ${losses.join(' ')}`);
  const median = (pick: (m: Measured) => number): number =>
    times.map(pick).sort((a, b) => a - b)[times.length >> 1]!;
  const tokens = batch.tokens_T.length;
  return { wall: tokens / median((m) => m.wall), cpu: tokens / median((m) => m.cpu), n: times.length };
}

if (values.worker !== undefined) {
  const result = await work(Number(values.worker));
  process.send?.(result, () => process.exit(0));
} else {
  const measure = (threads: number): Promise<Measured> =>
    new Promise((resolve, reject) => {
      const child = fork(fileURLToPath(import.meta.url), [
        ...['--worker', String(threads), '--micro', values.micro, '--steps', String(steps)],
      ]);
      child.once('message', (result) => resolve(result as Measured));
      child.once('exit', (code) => reject(new Error(`a worker ended with ${code} and no result`)));
    });
  const rows: object[] = [];
  const add = (name: string, value: number, unit: string, n: number, config: object): void => {
    rows.push({ name, value, unit, better: 'higher', n, config });
    console.log(`${name.padEnd(40)} ${value.toFixed(0).padStart(8)} ${unit}  n=${n}`);
  };
  const shape = { d: 128, layers: 4, vocab: 768, rows: 64, microBatchTokens: Number(values.micro) };
  for (const threads of [1, 2]) {
    const result = await measure(threads);
    add(`sft/threads${threads}_wall`, result.wall, 'tokens/s', result.n, { ...shape, threads });
    add(`sft/threads${threads}_cpu`, result.cpu, 'tokens/cpu-s', result.n, { ...shape, threads });
  }
  const both = await Promise.all([measure(1), measure(1)]);
  const sum = both.reduce((total, result) => total + result.wall, 0);
  add('sft/processes2_wall', sum, 'tokens/s, both together', both[0]!.n, {
    ...shape,
    threads: 1,
    processes: 2,
  });
  if (values.out) {
    const machine = {
      cpu: cpus()[0]?.model,
      cores: cpus().length,
      memoryGib: Math.round(totalmem() / 2 ** 30),
      loadavg: loadavg(),
      node: process.version,
    };
    writeFileSync(values.out, JSON.stringify({ schema: 1, machine, rows }, null, 2) + '\n');
  }
}
