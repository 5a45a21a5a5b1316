import { join } from 'node:path';
import { readJson, readTensors } from '@treeward/base';
import { describe, expect, it } from 'vitest';
import { readWeights } from '../checkpoint/weights.js';
import { constantRows, packRows, tinyCheckpoint, tinyRows } from '../testing/batches.js';
import { lossAndGradients, relativeDifference, workbench } from '../testing/gradients.js';
import { loadTensorFlow } from '../tf/load.js';
import { Ops } from '../tf/ops.js';
import { scoreTokens } from '../update/score.js';
import { buildForest } from '../pack/forest.js';
import { toTensors } from '../weights-store.js';
import { EMBED, HEAD } from './params.js';

interface Expected {
  rows: number[][];
  weights: number[][];
  logprobs: (number | null)[][];
  entropies: (number | null)[][];
  loss: number;
}
const expected = readJson<Expected>(join(tinyCheckpoint, 'expected.json'));
const ops = new Ops(loadTensorFlow());
const { config, params } = readWeights(tinyCheckpoint);
const batch = packRows(expected.rows, expected.weights);
const total = expected.weights.flat().reduce((a, b) => a + b);
const weight = (token: number): number => batch.advantages_T[token]! / total;
const firsts = new Set(batch.rowStart_B1);
const all = Array.from(batch.tokens_T, (_, t) => t).filter((t) => !firsts.has(t));
const weighted = all.filter((t) => batch.advantages_T[t] !== 0);

describe('Qwen3 against transformers', () => {
  it('gives the same log-probabilities and entropies, in one micro-batch or many', async () => {
    const tensors = toTensors(ops, params);
    for (const microBatchTokens of [1, 64]) {
      const bench = workbench(ops, config, { microBatchTokens });
      const { logprobs_T, entropies_T } = await scoreTokens(bench, tensors, batch, buildForest(batch), all);
      const difference = (got: Float32Array, want: (number | null)[][]): number =>
        Math.max(...all.map((t) => Math.abs(got[t]! - want.flat()[t]!)));
      expect(all).toHaveLength(21);
      expect(difference(logprobs_T, expected.logprobs)).toBeLessThan(1e-5);
      expect(difference(entropies_T, expected.entropies)).toBeLessThan(1e-5);
    }
  });

  it.each([
    ['one micro-batch', 64, Infinity],
    ['a few', 16, Infinity],
    ['one per path', 1, Infinity],
    ['activation checkpointing', 64, 0],
  ])('gives the same loss and gradients: %s', async (_, microBatchTokens, checkpointAbove) => {
    const golden = readTensors(join(tinyCheckpoint, 'gradients.safetensors')).tensors;
    const bench = workbench(ops, config, { microBatchTokens, checkpointAbove });
    const { loss, grads } = await lossAndGradients(bench, params, batch, { weight }, weighted);
    expect(loss).toBeCloseTo(expected.loss, 5);
    expect([...grads.keys()].sort()).toEqual([...golden.keys()].sort());
    for (const [name, { data }] of golden) {
      expect(relativeDifference(grads.get(name)!.data, data), name).toBeLessThan(2e-5);
    }
  });

  it('ties: the gradient of E is that of the head plus scale × that of the embedding', async () => {
    const scale = 4;
    const head = params.get(HEAD)!;
    const embed = { shape: head.shape, data: (head.data as Float32Array).map((x) => x * scale) };
    const untied = await lossAndGradients(
      workbench(ops, config),
      new Map([...params, [EMBED, embed]]),
      batch,
      { weight },
      weighted,
    );
    const tied = await lossAndGradients(
      workbench(ops, { ...config, tie: scale }),
      new Map([...params].filter(([name]) => name !== EMBED)),
      batch,
      { weight },
      weighted,
    );
    expect(tied.loss).toBeCloseTo(untied.loss, 6);
    const want = (untied.grads.get(HEAD)!.data as Float32Array).map(
      (x, i) => x + scale * untied.grads.get(EMBED)!.data[i]!,
    );
    expect(relativeDifference(tied.grads.get(HEAD)!.data, want)).toBeLessThan(1e-5);
  });

  it('leaves no tensor behind', async () => {
    const rows = packRows(
      tinyRows,
      constantRows(tinyRows, () => 1),
    );
    const wanted = Array.from(rows.tokens_T, (_, t) => t).filter((t) => !rows.rowStart_B1.includes(t));
    const run = async (checkpointAbove: number): Promise<number> => {
      const before = ops.tf.memory().numTensors;
      const bench = workbench(ops, config, { microBatchTokens: 16, checkpointAbove });
      await lossAndGradients(bench, params, rows, { weight: () => 1, entropyWeight: 0.1 }, wanted);
      return ops.tf.memory().numTensors - before;
    };
    await run(Infinity);
    expect(await run(Infinity)).toBe(0);
    expect(await run(0)).toBe(0);
  });
});

describe.each(['tiny-llama3', 'tiny-llama-tied', 'tiny-qwen3-yarn'])('%s against transformers', (name) => {
  const folder = join(import.meta.dirname, '..', '__fixtures__', name);
  const { tensors } = readTensors(join(folder, 'expected.safetensors'));
  const [R, T, V] = tensors.get('logits')!.shape as [number, number, number];
  const tokens = tensors.get('rows')!.data as Int32Array;
  const rows = Array.from({ length: R }, (_, r) => [...tokens.subarray(r * T, (r + 1) * T)]);
  const packed = packRows(
    rows,
    constantRows(rows, () => 1),
  );
  const wanted = Array.from(packed.tokens_T, (_, t) => t).filter((t) => t % T !== 0);

  it('every next-token log-probability is within 1e-4', async () => {
    const weights = readWeights(folder);
    const bench = workbench(ops, weights.config);
    const params = toTensors(ops, weights.params);
    const logits = tensors.get('logits')!.data as Float32Array;
    // Every token of the vocabulary as the row's next one, so that the whole distribution is compared.
    for (const at of [0, 7, T - 1]) {
      const branches = packRows(
        rows.flatMap((row) => Array.from({ length: V }, (_, v) => [...row.slice(0, at + 1), v])),
        rows.flatMap(() => Array.from({ length: V }, () => Array.from({ length: at + 2 }, () => 0))),
      );
      const ends = Array.from({ length: R * V }, (_, b) => branches.rowStart_B1[b + 1]! - 1);
      const { logprobs_T } = await scoreTokens(bench, params, branches, buildForest(branches), ends);
      for (let r = 0; r < R; r++) {
        const own = logits.subarray((r * T + at) * V, (r * T + at + 1) * V);
        const lse = Math.log(own.reduce((sum, z) => sum + Math.exp(z), 0));
        own.forEach((z, v) => {
          expect(Math.abs(logprobs_T[ends[r * V + v]!]! - (z - lse))).toBeLessThan(1e-4);
        });
      }
    }
  });

  it('loss and the gradient of every array agree', async () => {
    const weights = readWeights(folder);
    const bench = workbench(ops, weights.config);
    const mean = { weight: () => 1 / wanted.length };
    const { loss, grads } = await lossAndGradients(bench, weights.params, packed, mean, wanted);
    expect(Math.abs(loss - tensors.get('loss')!.data[0]!)).toBeLessThan(1e-5);
    for (const [key, { data }] of tensors) {
      if (!key.startsWith('grad.')) continue;
      const parameter = key.slice(5);
      const got = grads.get(parameter) ?? (parameter === EMBED ? grads.get(HEAD) : undefined);
      expect(relativeDifference(got!.data, data), key).toBeLessThan(1e-4);
    }
  });
});
