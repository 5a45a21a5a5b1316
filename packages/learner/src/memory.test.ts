import { fork } from 'node:child_process';
import { writeFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { embeddedConfig, type ModelConfig } from './model/config.js';
import { estimateMemory } from './memory-estimate.js';

const full = process.env['TREEWARD_TEST_FULL'] === '1';
const MIB = 2 ** 20;

const shape = (hidden: number, layers: number): ModelConfig => ({
  ...embeddedConfig(4096, hidden, layers),
  heads: 4,
  kvHeads: 4,
  headDim: hidden / 4,
  ffnSize: 4 * hidden,
  maxPositions: 1 << 16,
  tie: 1,
});

interface Job {
  config: ModelConfig;
  rows: number;
  length: number;
  microBatchTokens: number;
  checkpointAbove?: number;
  steps: number;
}

interface Measured {
  /** Resident bytes before the first step, at most during the steps, and after each. */
  before: number;
  peak: number;
  after: number[];
  loss: number;
}

// Built code in a process of its own, whose malloc gives memory back at once: what is resident is what is used.
const WORKER = `
import { readFileSync } from 'node:fs';
import { TfjsLearner } from ${JSON.stringify(new URL('../dist/index.js', import.meta.url).href)};
process.on('message', async ({ config, rows, length, microBatchTokens, checkpointAbove, steps }) => {
  const status = (field) => Number(new RegExp(field + ':\\\\s+(\\\\d+)').exec(readFileSync('/proc/self/status', 'utf8'))[1]) * 1024;
  const learner = await TfjsLearner.open({ init: { config, seed: 1 }, microBatchTokens, checkpointAbove, threads: 2 });
  const T = rows * (length + 1);
  const token = (t) => (Math.imul(t + 1, 2654435761) >>> 8) % config.vocabSize;
  const first = (t) => t % (length + 1) === 0;
  const batch = {
    rowStart_B1: Int32Array.from({ length: rows + 1 }, (_, b) => b * (length + 1)),
    tokens_T: Int32Array.from({ length: T }, (_, t) => (first(t) ? t / (length + 1) : token(t))),
    owned_T: Uint8Array.from({ length: T }, (_, t) => (first(t) ? 0 : 1)),
    rolloutLogprobs_T: new Float32Array(T).fill(-8),
    advantages_T: Float32Array.from({ length: T }, (_, t) => (first(t) ? 0 : 1)),
    temperature_T: new Float32Array(T).fill(1),
    rollout_B: Int32Array.from({ length: rows }, (_, b) => b),
    bannedIds: [],
    numRollouts: rows,
  };
  const before = status('VmRSS');
  const after = [];
  let loss = 0;
  for (let i = 0; i < steps; i++) {
    loss = (await learner.update(batch, { kind: 'sft' }, { lr: 1e-4, maxGradNorm: 1 }))['loss/sft'];
    if (i % 50 === 49 || i === steps - 1) globalThis.gc();
    after.push(status('VmRSS'));
  }
  process.send({ before, peak: status('VmHWM'), after, loss }, () => process.exit(0));
});
`;

function measure(job: Job): Promise<Measured> {
  const file = join(mkdtempSync(join(tmpdir(), 'treeward-memory-')), 'worker.mjs');
  writeFileSync(file, WORKER);
  return new Promise((resolve, reject) => {
    const child = fork(file, [], {
      execArgv: ['--expose-gc'],
      env: {
        ...process.env,
        MALLOC_MMAP_THRESHOLD_: '65536',
        MALLOC_TRIM_THRESHOLD_: '65536',
        MALLOC_ARENA_MAX: '2',
      },
    });
    child.once('message', (measured) => resolve(measured as Measured));
    child.once('exit', (code) => reject(new Error(`the worker ended with ${code} and no result`)));
    child.send(job);
  });
}

describe('memory', () => {
  it.each([
    [
      '1.6 M parameters, 2048 tokens at once',
      { config: shape(128, 4), rows: 8, length: 256, microBatchTokens: 2048 },
    ],
    [
      'with activation checkpointing',
      { config: shape(128, 4), rows: 8, length: 256, microBatchTokens: 2048, checkpointAbove: 1 },
    ],
  ])('the estimate is within a third of the measured peak: %s', async (name, job) => {
    const { before, peak } = await measure({ ...job, steps: 2 });
    const { checkpointAbove } = job as Job;
    const estimate = estimateMemory({
      config: job.config,
      passTokens: job.microBatchTokens,
      ...(checkpointAbove !== undefined && { checkpointAbove }),
    });
    const measured = peak - before;
    const expected = estimate.total - estimate.weights;
    console.log(
      `${name}: estimated ${(expected / MIB).toFixed(0)} MiB, measured ${(measured / MIB).toFixed(0)} MiB`,
    );
    expect(measured).toBeGreaterThan(expected / 1.5);
    expect(measured).toBeLessThan(expected * 1.34);
  });

  it.runIf(full)(
    'one rollout of 32,768 tokens of the 7 M model trains within 8 GB (minutes: full tests only)',
    async () => {
      const { peak, loss } = await measure({
        config: shape(256, 6),
        rows: 1,
        length: 32_768,
        microBatchTokens: 2048,
        steps: 1,
      });
      console.log(
        `32,768 tokens, 7 M parameters: peak ${(peak / 2 ** 30).toFixed(2)} GiB, loss ${loss.toFixed(3)}`,
      );
      expect(Number.isFinite(loss)).toBe(true);
      expect(peak).toBeLessThan(8e9);
    },
    1_800_000,
  );

  it.runIf(full)(
    'is flat over 1,000 steps (minutes: full tests only)',
    async () => {
      const config = { ...embeddedConfig(64, 64, 1), ffnSize: 32 };
      const { after } = await measure({ config, rows: 4, length: 32, microBatchTokens: 64, steps: 1000 });
      console.log(
        `after 100 steps ${(after[99]! / MIB).toFixed(1)} MiB, after 1,000 ${(after[999]! / MIB).toFixed(1)} MiB`,
      );
      expect(after[999]! - after[99]!).toBeLessThan(8 * MIB);
    },
    600_000,
  );
});
