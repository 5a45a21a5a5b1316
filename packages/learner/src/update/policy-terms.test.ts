import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tinyCheckpoint } from '../testing/batches.js';
import { randomTree } from '../testing/random-tree.js';
import { TfjsLearner, type TfjsLearnerOptions } from '../tfjs-learner.js';
import type { PackedTrees, PolicyLoss } from '../types.js';

const loss: PolicyLoss = {
  kind: 'policy',
  clipLow: 0.2,
  clipHigh: 0.28,
  importance: 'off',
  normaliser: 'batch-tokens',
  epochs: 1,
  minibatches: 1,
  klStop: 0,
  seed: 'terms',
};
const step = { lr: 3e-3, maxGradNorm: 1 };
const open = (more: Partial<TfjsLearnerOptions> = {}): Promise<TfjsLearner> =>
  TfjsLearner.open({ checkpoint: tinyCheckpoint, ...more });
const batch = randomTree('terms', { rollouts: 4, vocabulary: 40 });
const flat: PackedTrees = { ...batch, advantages_T: new Float32Array(batch.advantages_T.length) };

async function weightsOf(learner: TfjsLearner): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'treeward-terms-'));
  await learner.save(folder);
  return readFileSync(join(folder, 'model.safetensors'));
}

describe('terms of the policy loss', () => {
  it('an entropy bonus trains even where every advantage is 0, and raises the entropy', async () => {
    const learner = await open();
    const first = await learner.update(flat, { ...loss, entropyCoef: 0.1 }, step);
    for (let i = 0; i < 5; i++) await learner.update(flat, { ...loss, entropyCoef: 0.1 }, step);
    const last = await learner.update(flat, { ...loss, entropyCoef: 0.1 }, step);
    expect(first['optim/updates']).toBe(1);
    expect(last['policy/entropy']).toBeGreaterThan(first['policy/entropy']! + 0.01);
  });

  it('a KL term needs reference weights, and draws towards them', async () => {
    const bare = await open();
    await expect(bare.update(batch, { ...loss, klCoef: 0.1 }, step)).rejects.toMatchObject({
      code: 'LEARNER_E_OPTIONS',
    });
    const away = async (klCoef: number): Promise<number> => {
      const learner = await open({ reference: tinyCheckpoint });
      const settings = { ...loss, klCoef, kl: 'k3' as const, epochs: 10 };
      await learner.update(batch, settings, step);
      return (await learner.update(flat, { ...loss, klCoef: 1e-9, kl: 'k3' }, step))['policy/ref_kl']!;
    };
    const [free, held] = [await away(1e-9), await away(10)];
    expect(free).toBeGreaterThan(1e-3);
    expect(held).toBeLessThan(free / 2);
  });

  it('gspo keeps a rollout’s tokens together: small micro-batches give the same step as one', async () => {
    const settings: PolicyLoss = {
      ...loss,
      objective: 'gspo',
      normaliser: 'rollout-mean',
      clipLow: 0.5,
      clipHigh: 0.5,
      epochs: 3,
    };
    const after = async (microBatchTokens: number): Promise<Float32Array> => {
      const learner = await open({ microBatchTokens });
      await learner.update(batch, settings, step);
      return (await learner.score(batch)).logprobs_T;
    };
    const [whole, cut] = [await after(4096), await after(1)];
    whole.forEach((x, t) => {
      if (batch.owned_T[t] && !Number.isNaN(x)) expect(Math.abs(x - cut[t]!)).toBeLessThan(1e-3);
    });
  });

  it('a rollout without a single advantage costs no backward pass', async () => {
    const learner = await open();
    const third = batch.rowStart_B1[batch.rollout_B.indexOf(2)]!;
    const half = { ...batch, advantages_T: batch.advantages_T.map((a, t) => (t < third ? a : 0)) };
    const all = await learner.update(batch, loss, { ...step, lr: 1e-9 });
    const some = await learner.update(half, loss, { ...step, lr: 1e-9 });
    expect(some['progress/rollouts_zero_advantage']).toBe(2);
    expect(some['perf/tokens_computed']).toBeLessThan(all['perf/tokens_computed']! * 0.75);
    expect(some['progress/tokens_trained']).toBe(all['progress/tokens_trained']);
  });

  it('the constant normaliser is the same for every shape: twice the batch, twice the constant, one step', async () => {
    const once = await open();
    const twice = await open();
    const B = batch.rollout_B.length;
    const double = <A extends Int32Array | Uint8Array | Float32Array>(a: A, shift = 0): A =>
      Reflect.construct(a.constructor, [[...a, ...[...a].map((x) => (x < 0 ? x : x + shift))]]) as A;
    const T = batch.tokens_T.length;
    const joined: PackedTrees = {
      ...batch,
      rowStart_B1: Int32Array.from([
        ...batch.rowStart_B1,
        ...[...batch.rowStart_B1].slice(1).map((x) => x + T),
      ]),
      parent_B: double(batch.parent_B!, B),
      tokens_T: double(batch.tokens_T),
      owned_T: double(batch.owned_T),
      rolloutLogprobs_T: double(batch.rolloutLogprobs_T),
      advantages_T: Float32Array.from([...batch.advantages_T, ...batch.advantages_T]),
      temperature_T: double(batch.temperature_T),
      rollout_B: double(batch.rollout_B, batch.numRollouts),
      numRollouts: 2 * batch.numRollouts,
    };
    const a = await once.update(batch, { ...loss, normaliser: 50 }, step);
    const b = await twice.update(joined, { ...loss, normaliser: 100 }, step);
    expect(b['optim/grad_norm']).toBeCloseTo(a['optim/grad_norm']!, 5);
    expect(b['perf/tokens_computed']).toBe(a['perf/tokens_computed']);
    expect((await weightsOf(twice)).length).toBe((await weightsOf(once)).length);
  });
});
