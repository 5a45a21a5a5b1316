// A training step beside PyTorch's (SDPA, fused AdamW, the same threads), in turns in one run; what a step adds to the process's
// memory; and how much of what sharing prefixes saves in arithmetic it saves in time. Method: the losses of the first step must
// agree with PyTorch's before anything is timed; medians over alternating steps. Our memory is taken in a process whose malloc
// gives memory back at once, as the peer's is after malloc_trim.
// Run: npx nx run learner:bench -- [--quick] [--threads N] [--out FILE] [--filter TEXT] [--profile 1.6M|7M: where a step's time goes, instead]
import { fork } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { writeBenchRows, type BenchRow } from '@treeward/base';
import { readWeights, TfjsLearner, type PackedTrees } from '@treeward/learner';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { benchCases, benchRows, type BenchCase } from './testing/models.bench.js';
import { benchTrees, pathsOnTheirOwn } from './testing/bench-trees.js';
import { profileOperators } from './testing/operator-profile.js';
import { treeCost } from './testing/tree-cost.js';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    threads: { type: 'string', default: '1' },
    out: { type: 'string' },
    filter: { type: 'string', default: '' },
    memory: { type: 'string' },
    profile: { type: 'string' },
  },
});
const threads = Number(values.threads);
const wanted = (rows: string): boolean => rows.includes(values.filter);
const step = { lr: 1e-4, maxGradNorm: 1 };
const require = createRequire(import.meta.url);
const folderOf = (name: string): string => dirname(require.resolve(`${name}/package.json`));

/** What is used of native/src/testing/torch-peer.ts. */
interface Peer {
  findTorchPython(): string | undefined;
  TORCH_HINT: string;
  startTorchPeer(options: { threads: number; caseFolders: string[] }): Promise<{
    versions: Record<string, string>;
    prepare(
      name: string,
      inputs: object,
      options: object,
    ): Promise<{
      run(): Promise<{ overriddenDuration: number }>;
      results(): Promise<Record<string, Float32Array>>;
      peakBytes(): Promise<number>;
      release(): Promise<void>;
    }>;
    close(): Promise<void>;
  }>;
}

const median = (list: readonly number[]): number => [...list].sort((a, b) => a - b)[list.length >> 1]!;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

const open = (config: BenchCase['config'], microBatchTokens: number): Promise<TfjsLearner> =>
  TfjsLearner.open({ init: { config, seed: 1 }, threads, microBatchTokens });

/** In a process of its own: by how much a step raises the resident memory, in bytes. */
async function measureMemory(name: keyof typeof benchCases): Promise<number> {
  const batch = benchRows(benchCases[name]);
  const learner = await open(benchCases[name].config, batch.tokens_T.length);
  await learner.update(batch, { kind: 'sft' }, step);
  global.gc?.();
  const status = (field: string): number =>
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8'))![1]) * 1024;
  writeFileSync('/proc/self/clear_refs', '5');
  const before = status('VmRSS');
  await learner.update(batch, { kind: 'sft' }, step);
  return status('VmHWM') - before;
}

const memoryOf = (name: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), ['--memory', name, '--threads', values.threads], {
      execArgv: ['--expose-gc'],
      env: {
        ...process.env,
        MALLOC_MMAP_THRESHOLD_: '65536',
        MALLOC_TRIM_THRESHOLD_: '65536',
        MALLOC_ARENA_MAX: '1',
      },
    });
    child.once('message', (bytes) => resolve(bytes as number));
    child.once('exit', (code) => reject(new Error(`a worker ended with ${code} and no result`)));
  });

const rows: BenchRow[] = [];
const add = (row: BenchRow): void => {
  rows.push(row);
  const ratio = row.ratio === undefined ? '' : `  ratio ${row.ratio.toFixed(3)}`;
  console.log(`${row.name.padEnd(28)} ${row.value.toFixed(1).padStart(10)} ${row.unit}${ratio}  n=${row.n}`);
};

async function beside(
  name: keyof typeof benchCases,
  peer: Awaited<ReturnType<Peer['startTorchPeer']>>,
  n: number,
): Promise<void> {
  const { config, rows: B, length: T } = benchCases[name];
  const batch = benchRows(benchCases[name]);
  const learner = await open(config, batch.tokens_T.length);
  const folder = mkdtempSync(join(tmpdir(), 'treeward-bench-'));
  await learner.save(folder);
  const inputs = Object.fromEntries(
    [...readWeights(folder).params].map(([key, { shape, data }]) => [key, { shape, data }]),
  );
  const options = { ...config, lr: step.lr };
  const torch = await peer.prepare(
    'torch_decoder.step',
    { ...inputs, rows: { data: batch.tokens_T, shape: [B, T + 1] } },
    options,
  );
  const theirLoss = (await torch.results())['loss']![0]!;
  const ourLoss = (await learner.update(batch, { kind: 'sft' }, step))['loss/sft']!;
  if (!(Math.abs(ourLoss - theirLoss) < 1e-3))
    throw new Error(`${name}: loss ${ourLoss}, torch has ${theirLoss}`);
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let i = 0; i < n + 1; i++) {
    const theirMs = (await torch.run()).overriddenDuration;
    const ourMs = await timed(() => learner.update(batch, { kind: 'sft' }, step));
    if (i === 0) continue;
    theirs.push(theirMs);
    ours.push(ourMs);
  }
  const config_ = { threads, rows: B, length: T, ...peer.versions };
  add({
    name: `step/${name}/vs_torch`,
    value: median(ours),
    unit: 'ms',
    better: 'lower',
    against: 'torch: SDPA, fused AdamW',
    ratio: median(theirs.map((ms, i) => ms / ours[i]!)),
    n,
    config: config_,
  });
  if (name === '7M') {
    const ourBytes = await memoryOf(name);
    const theirBytes = await torch.peakBytes();
    add({
      name: `memory/${name}/of_torch`,
      value: ourBytes / 2 ** 20,
      unit: 'MiB',
      better: 'lower',
      against: 'torch: SDPA, fused AdamW',
      ratio: ourBytes / theirBytes,
      n: 1,
      config: config_,
    });
  }
  await torch.release();
  await learner.close();
}

async function packed(n: number): Promise<void> {
  const { config } = benchCases['1.6M'];
  for (const [name, batch] of Object.entries(benchTrees())) {
    const scored =
      (of: PackedTrees) =>
      (token: number): boolean =>
        of.advantages_T[token] !== 0;
    const alone = pathsOnTheirOwn(batch);
    const [shared, separate] = [
      treeCost(config, batch, scored(batch)),
      treeCost(config, alone, scored(alone)),
    ];
    const learner = await open(config, 4096);
    const times: number[] = [];
    const ratios: number[] = [];
    for (let i = 0; i < n + 1; i++) {
      const ours = await timed(() => learner.update(batch, { kind: 'sft' }, step));
      const theirs = await timed(() => learner.update(alone, { kind: 'sft' }, step));
      if (i === 0) continue;
      times.push(ours);
      ratios.push(theirs / ours);
    }
    const ideal = separate.flops / shared.flops;
    add({
      name: name === 'synthetic' ? 'tree_packed/of_ideal' : `tree_packed/${name}/of_ideal`,
      value: median(times),
      unit: 'ms',
      better: 'higher',
      against: 'what sharing saves in operations',
      ratio: median(ratios) / ideal,
      n,
      config: {
        threads,
        ideal,
        speedup: median(ratios),
        distinct: shared.distinct,
        separate: separate.distinct,
      },
    });
    await learner.close();
  }
}

/** Where the time of a step goes, by operator. */
async function profile(name: keyof typeof benchCases, n: number): Promise<void> {
  const batch = benchRows(benchCases[name]);
  const learner = await open(benchCases[name].config, batch.tokens_T.length);
  await learner.update(batch, { kind: 'sft' }, step);
  const spent = profileOperators();
  const ms = await timed(async () => {
    for (let i = 0; i < n; i++) await learner.update(batch, { kind: 'sft' }, step);
  });
  console.log(`step/${name}: ${(ms / n).toFixed(1)} ms with ${threads} threads, by operator:`);
  for (const { name: operator, ms: own, calls } of spent()) {
    const share = ((own / ms) * 100).toFixed(1);
    console.log(
      `  ${operator.padEnd(28)} ${(own / n).toFixed(1).padStart(8)} ms ${share.padStart(5)} %  ${calls / n} calls`,
    );
  }
}

if (values.profile !== undefined)
  await profile(values.profile as keyof typeof benchCases, values.quick ? 3 : 10);
else if (values.memory !== undefined) {
  const bytes = await measureMemory(values.memory as keyof typeof benchCases);
  process.send?.(bytes, () => process.exit(0));
} else {
  const module = join(folderOf('@treeward/native'), 'out-tsc/vitest/src/testing/torch-peer.js');
  const { findTorchPython, startTorchPeer, TORCH_HINT } = (await import(pathToFileURL(module).href)) as Peer;
  if (findTorchPython() === undefined) console.log(TORCH_HINT);
  else {
    const peer = await startTorchPeer({
      threads,
      caseFolders: [join(folderOf('@treeward/learner'), 'scripts')],
    });
    if (wanted('step/1.6M/vs_torch')) await beside('1.6M', peer, values.quick ? 8 : 40);
    if (wanted('step/7M/vs_torch memory/7M/of_torch')) await beside('7M', peer, values.quick ? 2 : 8);
    await peer.close();
  }
  if (wanted('tree_packed')) await packed(values.quick ? 2 : 7);
  if (values.out) writeBenchRows(values.out, rows);
}
