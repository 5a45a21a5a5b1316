import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readWeights } from '../checkpoint/weights.js';
import { packRows, tinyCheckpoint } from '../testing/batches.js';
import { lossAndGradients, relativeDifference, workbench } from '../testing/gradients.js';
import { randomTree, separatePaths } from '../testing/random-tree.js';
import { loadTensorFlow } from '../tf/load.js';
import { Ops } from '../tf/ops.js';
import { forEachRow, hasPrediction } from '../trainable.js';
import type { PackedTrees } from '../types.js';
import { buildForest } from './forest.js';
import { microBatches } from './micro-batches.js';

const ops = new Ops(loadTensorFlow());
const { config, params } = readWeights(tinyCheckpoint);

function owned(batch: PackedTrees): number[] {
  const out: number[] = [];
  forEachRow(batch, (row, from, to) => {
    for (let t = from; t < to; t++) if (batch.owned_T[t] && hasPrediction(batch, row, t)) out.push(t);
  });
  return out;
}

describe('forest', () => {
  it('holds equal beginnings once, over rows, branches and rollouts', () => {
    const batch = packRows(
      [
        [1, 2, 3, 4],
        [1, 2, 3, 5],
        [1, 2, 6],
        [7, 2],
        [1, 2, 3, 4],
      ],
      [[], [], [], [], []],
    );
    const forest = buildForest(batch);
    expect([...forest.tokens_F]).toEqual([1, 2, 3, 4, 5, 6, 7, 2]);
    expect([...forest.parent_F]).toEqual([-1, 0, 1, 2, 2, 1, -1, 6]);
    expect([...forest.end_F]).toEqual([6, 6, 5, 4, 5, 6, 8, 8]);
    expect([...forest.depth_F]).toEqual([0, 1, 2, 3, 3, 2, 0, 1]);
    expect([...forest.position_T.subarray(13)]).toEqual([0, 1, 2, 3]);
  });

  it('refuses rows that continue later ones, and ids that are none', () => {
    const batch = packRows([[1], [2]], [[], []]);
    expect(() => buildForest({ ...batch, parent_B: Int32Array.of(1, -1) })).toThrow(/parent_B\[0\]/);
    expect(() => buildForest({ ...batch, tokens_T: Int32Array.of(1, -5) })).toThrow(/tokens_T\[1\]/);
  });

  it('micro-batches hold every wanted token once, within the budget or the longest path', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1, max: 60 }), (seed, budget) => {
        const batch = randomTree(seed, { rollouts: 4, vocabulary: 3 });
        const forest = buildForest(batch);
        const wanted = owned(batch);
        const micros = microBatches(batch, forest, wanted, { budget });
        const scored = micros.flatMap((micro) => [...micro.source_M]);
        expect(scored.sort((a, b) => a - b)).toEqual(wanted);
        const longest = Math.max(0, ...wanted.map((t) => forest.depth_F[forest.position_T[t]!]!));
        for (const micro of micros) {
          expect(micro.tokens_N.length).toBeLessThanOrEqual(Math.max(budget, longest));
        }
        const [whole] = microBatches(batch, forest, wanted, { budget: 1e9 });
        expect(whole?.tokens_N.length ?? 0).toBeLessThanOrEqual(forest.tokens_F.length);
      }),
    );
  });
});

describe('tree-packed training', () => {
  it.each([1, 2, 3, 4])(
    'equals every path on its own with once-only weights: loss and gradients to 1e-5 (tree %i)',
    async (seed) => {
      const batch = randomTree(seed, { rollouts: 3, vocabulary: 40 });
      const wanted = owned(batch);
      const n = wanted.length;
      const objective = { weight: (t: number): number => batch.advantages_T[t]! / n, entropyWeight: 0.3 / n };
      const bench = workbench(ops, config);
      const packed = await lossAndGradients(bench, params, batch, objective, wanted);

      // Root-to-leaf rows without anything shared, one row per pass.
      const { rows, source_T } = separatePaths(batch);
      const separate: typeof packed = { loss: 0, grads: new Map(), logprobs: new Map(), computed: 0 };
      for (const { tokens, from } of rows) {
        const alone = packRows([tokens], [tokens.map(() => 0)]);
        const here = Array.from({ length: tokens.length }, (_, i) => i).filter(
          (i) => source_T[from + i]! >= 0,
        );
        if (here.length === 0) continue;
        const weight = (i: number): number => objective.weight(source_T[from + i]!);
        const part = await lossAndGradients(
          bench,
          params,
          alone,
          { weight, entropyWeight: objective.entropyWeight },
          here,
        );
        separate.loss += part.loss;
        separate.computed += part.computed;
        for (const [i, logprob] of part.logprobs) separate.logprobs.set(source_T[from + i]!, logprob);
        for (const [name, { shape, data }] of part.grads) {
          const sum = separate.grads.get(name);
          if (sum) data.forEach((g, i) => (sum.data[i]! += g));
          else separate.grads.set(name, { shape, data: data.slice() });
        }
      }
      expect(separate.logprobs.size).toBe(wanted.length);
      expect(packed.computed).toBeLessThan(separate.computed * 0.8);
      expect(Math.abs(packed.loss - separate.loss)).toBeLessThan(1e-5);
      for (const [name, { data }] of separate.grads) {
        const got = packed.grads.get(name)!.data;
        data.forEach((g, i) => expect(Math.abs(got[i]! - g), name).toBeLessThan(1e-5));
        expect(relativeDifference(got, data), name).toBeLessThan(5e-5);
      }
    },
  );

  it('gives the same gradients when cut into pieces, by path or by rollout', async () => {
    const batch = randomTree(9, { rollouts: 5, vocabulary: 40 });
    const wanted = owned(batch);
    const objective = { weight: (t: number): number => batch.advantages_T[t]! };
    const bench = workbench(ops, config);
    const whole = await lossAndGradients(bench, params, batch, objective, wanted);
    const row_T = batch.tokens_T.map((_, t) => batch.rowStart_B1.findIndex((start) => start > t) - 1);
    const together = (t: number): number => batch.rollout_B[row_T[t]!]!;
    for (const cut of [{ budget: 30 }, { budget: 30, together }]) {
      const cutUp = await lossAndGradients(bench, params, batch, objective, wanted, cut);
      expect(cutUp.computed).toBeGreaterThan(whole.computed);
      for (const [name, { data }] of whole.grads) {
        expect(relativeDifference(cutUp.grads.get(name)!.data, data), name).toBeLessThan(1e-5);
      }
    }
  });
});
