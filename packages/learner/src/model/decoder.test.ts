import { join } from 'node:path';
import { readJson, readTensors } from '@treeward/base';
import { describe, expect, it } from 'vitest';
import { readWeights } from '../checkpoint.js';
import { microBatches } from '../micro-batches.js';
import { constantRows, packRows, tinyCheckpoint, tinyRows } from '../testing/batches.js';
import { loadTensorFlow } from '../tf/load.js';
import { Ops } from '../tf/ops.js';
import { GradientSum, toArrays, toTensors } from '../weights-store.js';
import { runMicroBatch, tidy } from './decoder.js';
import { fuse, type Params } from './fused.js';
import { scoreHead, sftHead } from './heads.js';
import { EMBED, HEAD, type ParamArrays } from './params.js';
import type { ModelConfig } from './config.js';

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

/** Loss and gradients of the fixture's rows under given weights. */
function gradients(
  model: ModelConfig,
  arrays: ParamArrays,
  budget: number,
): { loss: number; grads: ParamArrays } {
  const batch = packRows(expected.rows, expected.weights);
  const total = expected.weights.flat().reduce((a, b) => a + b);
  const tensors: Params = toTensors(ops, arrays);
  const fused = tidy(ops.tf, () => fuse(ops, model, tensors));
  const sum = new GradientSum(ops, model);
  let loss = 0;
  const head = sftHead(
    ops,
    (token) => batch.advantages_T[token]! / total,
    (micro, logprobs_M) =>
      micro.source_M.forEach((token, m) => {
        loss -= (batch.advantages_T[token]! * logprobs_M[m]!) / total;
      }),
  );
  const wanted = (token: number): boolean => batch.advantages_T[token] !== 0;
  for (const micro of microBatches(batch, [0, 1, 2, 3], wanted, budget)) {
    sum.add(runMicroBatch(ops, model, fused, micro, head)!);
  }
  return { loss, grads: toArrays(sum.finish(tensors)) };
}

const largestDifference = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));

describe('decoder against transformers', () => {
  it('gives the same log-probabilities and entropies, padded or not', () => {
    const batch = packRows(
      expected.rows,
      constantRows(expected.rows, () => 1),
    );
    for (const budget of [1, 64]) {
      const logprobs: number[] = [];
      const entropies: number[] = [];
      const head = scoreHead(ops, { temperature: () => 1, bannedIds: [] }, (micro, l, e) =>
        micro.source_M.forEach((token, m) => {
          logprobs[token] = l[m]!;
          entropies[token] = e[m]!;
        }),
      );
      const tensors = toTensors(ops, params);
      const fused = tidy(ops.tf, () => fuse(ops, config, tensors));
      for (const micro of microBatches(batch, [0, 1, 2, 3], (t) => batch.owned_T[t] === 1, budget)) {
        expect(runMicroBatch(ops, config, fused, micro, head)).toBeNull();
      }
      const got = expected.logprobs.flat().map((want, t) => Math.abs((logprobs[t] ?? 0) - (want ?? 0)));
      const gotEntropy = expected.entropies
        .flat()
        .map((want, t) => Math.abs((entropies[t] ?? 0) - (want ?? 0)));
      expect(logprobs.filter((x) => x !== undefined)).toHaveLength(21);
      expect(Math.max(...got)).toBeLessThan(1e-5);
      expect(Math.max(...gotEntropy)).toBeLessThan(1e-5);
    }
  });

  it('gives the same loss and the same gradient of every array, in one micro-batch or many', () => {
    const golden = readTensors(join(tinyCheckpoint, 'gradients.safetensors')).tensors;
    for (const budget of [1, 16, 64]) {
      const { loss, grads } = gradients(config, params, budget);
      expect(loss).toBeCloseTo(expected.loss, 5);
      expect([...grads.keys()].sort()).toEqual([...golden.keys()].sort());
      for (const [name, { data }] of golden) {
        const scale = Math.max(...Array.from(data, Math.abs));
        expect(largestDifference(grads.get(name)!.data, data) / scale, name).toBeLessThan(2e-5);
      }
    }
  });

  it('ties: the gradient of E is that of the head plus scale × that of the embedding', () => {
    const scale = 4;
    const head = params.get(HEAD)!;
    const embed = { shape: head.shape, data: (head.data as Float32Array).map((x) => x * scale) };
    const untied = gradients(config, new Map([...params, [EMBED, embed]]), 64);
    const tiedParams = new Map([...params].filter(([name]) => name !== EMBED));
    const tied = gradients({ ...config, tie: scale }, tiedParams, 64);
    expect(tied.loss).toBeCloseTo(untied.loss, 6);
    const want = (untied.grads.get(HEAD)!.data as Float32Array).map(
      (x, i) => x + scale * untied.grads.get(EMBED)!.data[i]!,
    );
    expect(largestDifference(tied.grads.get(HEAD)!.data, want)).toBeLessThan(1e-6);
  });

  it('leaves no tensor behind', () => {
    gradients(config, params, 16);
    ops.trim();
    const run = (): number => {
      const before = ops.tf.memory().numTensors;
      const tensors = toTensors(ops, params);
      const fused = tidy(ops.tf, () => fuse(ops, config, tensors));
      const batch = packRows(
        tinyRows,
        constantRows(tinyRows, () => 1),
      );
      const [micro] = microBatches(batch, [0, 1, 2, 3], () => true, 64);
      const sum = new GradientSum(ops, config);
      sum.add(
        runMicroBatch(
          ops,
          config,
          fused,
          micro!,
          sftHead(
            ops,
            () => 1,
            () => undefined,
          ),
        )!,
      );
      for (const tensor of [...tensors.values(), ...sum.finish(tensors).values()]) tensor.dispose();
      ops.tf.dispose(fused as never);
      ops.trim();
      return ops.tf.memory().numTensors - before;
    };
    run();
    expect(run()).toBe(0);
  });
});
