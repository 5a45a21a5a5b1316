import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { embeddedConfig } from './model/config.js';
import { constantRows, packRows, tinyCheckpoint, tinyRows } from './testing/batches.js';
import { TfjsLearner } from './tfjs-learner.js';
import type { PackedTrees, PolicyLoss } from './types.js';

const loss: PolicyLoss = {
  kind: 'policy',
  clipLow: 0.2,
  clipHigh: 0.28,
  truncation: 2,
  normaliser: 'batch-tokens',
  epochs: 2,
  minibatches: 2,
  klStop: 0,
  seed: 'test',
};
const step = { lr: 1e-2, maxGradNorm: 1 };
const open = (kind: 'adamw' | 'muon' = 'adamw'): Promise<TfjsLearner> =>
  TfjsLearner.open({ checkpoint: tinyCheckpoint, optimizer: { kind } });
const scratch = (): string => mkdtempSync(join(tmpdir(), 'treeward-learner-'));

/** A batch whose recorded log-probabilities are the learner's own, as after a rollout with these weights. */
async function onPolicy(learner: TfjsLearner, advantage: (row: number) => number): Promise<PackedTrees> {
  const batch = packRows(tinyRows, constantRows(tinyRows, advantage));
  const { logprobs_T } = await learner.score(batch);
  return { ...batch, rolloutLogprobs_T: logprobs_T };
}

async function weightsOf(learner: TfjsLearner): Promise<Buffer> {
  const folder = scratch();
  await learner.save(folder);
  return readFileSync(join(folder, 'model.safetensors'));
}

describe('policy update', () => {
  it('raises the log-probability of rewarded rows and lowers the others', async () => {
    const learner = await open();
    const batch = await onPolicy(learner, (row) => (row % 2 ? -1 : 1));
    const before = await learner.score(batch);
    const metrics = await learner.update(batch, loss, { ...step, lr: 1e-3 });
    const after = await learner.score(batch);
    const change = (row: number): number => {
      let sum = 0;
      for (let t = batch.rowStart_B1[row]! + 1; t < batch.rowStart_B1[row + 1]!; t++) {
        sum += after.logprobs_T[t]! - before.logprobs_T[t]!;
      }
      return sum;
    };
    expect([0, 1, 2, 3].map((row) => Math.sign(change(row)))).toEqual([1, -1, 1, -1]);
    expect(metrics).toMatchObject({
      'optim/updates': 4,
      'progress/tokens_owned': 21,
      'progress/tokens_trained': 21,
      'progress/tokens_unusable': 0,
      'progress/rollouts_zero_advantage': 0,
      'policy/logprob_diff_max': 0,
      'policy/is_truncated_frac': 0,
    });
    expect(metrics['policy/ratio_max']).toBeGreaterThan(1);
    expect(metrics['optim/grad_norm']).toBeGreaterThan(0);
  });

  it('changes no bit of any weight when every advantage is 0, even with moments from earlier steps', async () => {
    const learner = await open();
    await learner.update(await onPolicy(learner, (row) => row - 1.5), loss, step);
    const before = await weightsOf(learner);
    const metrics = await learner.update(await onPolicy(learner, () => 0), loss, step);
    expect((await weightsOf(learner)).equals(before)).toBe(true);
    expect(metrics).toMatchObject({
      'optim/updates': 0,
      'optim/grad_norm': 0,
      'progress/rollouts_zero_advantage': 4,
      'progress/tokens_trained': 21,
    });
    expect(metrics['policy/entropy']).toBeGreaterThan(0);
  });

  it('moves elsewhere when the same advantages belong to other rows', async () => {
    const advantages = [1, -1, 0.5, -0.5];
    const results = await Promise.all(
      [advantages, [-1, 1, 0.5, -0.5]].map(async (values) => {
        const learner = await open();
        await learner.update(await onPolicy(learner, (row) => values[row]!), loss, step);
        return weightsOf(learner);
      }),
    );
    expect(results[0]!.equals(results[1]!)).toBe(false);
  });

  it('is the same for the same seed and another for another', async () => {
    const run = async (seed: string): Promise<Buffer> => {
      const learner = await open();
      await learner.update(await onPolicy(learner, (row) => row - 1.5), { ...loss, seed }, step);
      return weightsOf(learner);
    };
    const [a, b, c] = [await run('x'), await run('x'), await run('y')];
    expect(a.equals(b)).toBe(true);
    expect(a.equals(c)).toBe(false);
  });

  it('never trains a token without a log-probability or advantage', async () => {
    const full = await open();
    const cut = await open();
    const batch = await onPolicy(full, (row) => row - 1.5);
    const missing = {
      ...batch,
      rolloutLogprobs_T: batch.rolloutLogprobs_T.slice(),
      advantages_T: batch.advantages_T.slice(),
    };
    missing.rolloutLogprobs_T[2] = NaN;
    missing.advantages_T[9] = NaN;
    const notOwned = { ...batch, owned_T: batch.owned_T.slice() };
    notOwned.owned_T[2] = notOwned.owned_T[9] = 0;
    const metrics = await full.update(missing, loss, step);
    await cut.update(notOwned, loss, step);
    expect(metrics).toMatchObject({ 'progress/tokens_unusable': 2, 'progress/tokens_trained': 19 });
    expect((await weightsOf(full)).equals(await weightsOf(cut))).toBe(true);
  });

  it('stops the epochs once the policy has moved too far', async () => {
    const learner = await open();
    const batch = await onPolicy(learner, (row) => row - 1.5);
    const metrics = await learner.update(batch, { ...loss, epochs: 20, klStop: 1e-3 }, { ...step, lr: 0.05 });
    expect(metrics['policy/kl_stopped']).toBe(1);
    expect(metrics['optim/updates']).toBeLessThan(40);
    expect(metrics['optim/updates']).toBeGreaterThan(0);
  });

  it('leaves weights and version as they were when it fails half way', async () => {
    const learner = await open();
    const batch = await onPolicy(learner, (row) => row - 1.5);
    const before = await weightsOf(learner);
    // Found out only in a mini-batch: the native operator refuses the clip bound.
    await expect(learner.update(batch, { ...loss, clipLow: -1 }, step)).rejects.toMatchObject({});
    // The second mini-batch's step has no finite gradient.
    const poisoned = { ...batch, advantages_T: batch.advantages_T.slice() };
    poisoned.advantages_T.fill(3e38, batch.rowStart_B1[3]! + 1, batch.rowStart_B1[4]!);
    await expect(learner.update(poisoned, loss, step)).rejects.toMatchObject({ code: 'LEARNER_E_NONFINITE' });
    expect((await weightsOf(learner)).equals(before)).toBe(true);
    expect((await learner.publish(scratch())).policy.version).toBe(0);
  });

  it('masks banned ids and divides by the temperature', async () => {
    const learner = await open();
    const batch = packRows(
      tinyRows,
      constantRows(tinyRows, () => 1),
    );
    const plain = await learner.score(batch);
    const banned = await learner.score({ ...batch, bannedIds: [10, 38] });
    const cold = await learner.score({ ...batch, temperature_T: batch.temperature_T.map(() => 0.5) });
    expect(plain.logprobs_T[0]).toBeNaN();
    for (let t = 1; t < 7; t++) {
      expect(banned.logprobs_T[t]!).toBeGreaterThan(plain.logprobs_T[t]!);
      expect(cold.entropies_T[t]!).toBeLessThan(plain.entropies_T[t]!);
    }
    const metrics = await learner.update({ ...batch, bannedIds: [5] }, loss, step);
    expect(metrics['progress/tokens_unusable']).toBe(1);
  });

  it('refuses a token that the model has no row for, and trains nothing', async () => {
    const learner = await open();
    const batch = await onPolicy(learner, (row) => row - 1.5);
    const before = await weightsOf(learner);
    for (const token of [40, -1]) {
      const beyond = { ...batch, tokens_T: batch.tokens_T.map((known, t) => (t === 3 ? token : known)) };
      const refused = { code: 'LEARNER_E_TOKEN', data: { at: 3, token, vocabSize: 40 } };
      await expect(learner.score(beyond)).rejects.toMatchObject(refused);
      await expect(learner.update(beyond, loss, step)).rejects.toMatchObject(refused);
    }
    expect((await weightsOf(learner)).equals(before)).toBe(true);
  });

  it('refuses to train when engine and learner mean different things, but not for older versions', async () => {
    const learner = await open();
    const batch = await onPolicy(learner, (row) => row - 1.5);
    const off = { ...batch, rolloutLogprobs_T: batch.rolloutLogprobs_T.map((x) => x - 2) };
    const guarded = { ...loss, mismatchMax: 1 };
    await expect(learner.update(off, guarded, step)).rejects.toMatchObject({ code: 'LEARNER_E_MISMATCH' });
    await learner.update(batch, loss, step);
    const older = { ...off, version_B: new Int32Array(4).fill(0) };
    const kept = await learner.update(older, guarded, step);
    expect(kept).toMatchObject({
      'off_policy/mean': 1,
      'off_policy/dropped': 0,
      'policy/logprob_diff_mean': 0,
      'progress/tokens_trained': 21,
    });
    const dropped = await learner.update(older, { ...loss, staleness: 0 }, step);
    expect(dropped).toMatchObject({
      'off_policy/dropped': 21,
      'progress/tokens_trained': 0,
      'optim/updates': 0,
    });
  });
});

describe('checkpoints', () => {
  it.each(['adamw', 'muon'] as const)('save, load, continue is bit-exact (%s)', async (kind) => {
    const sft = packRows(
      tinyRows,
      constantRows(tinyRows, () => 1),
    );
    const straight = await open(kind);
    await straight.update(sft, { kind: 'sft' }, step);
    const folder = scratch();
    await straight.save(folder);
    await straight.update(sft, { kind: 'sft' }, step);
    const resumed = await open(kind);
    await resumed.load(folder);
    await resumed.update(sft, { kind: 'sft' }, step);
    expect((await weightsOf(resumed)).equals(await weightsOf(straight))).toBe(true);
    expect((await resumed.publish(scratch())).policy).toEqual({ id: 'policy-2', version: 2 });
  });

  it('keeps the tie of a model trained from scratch, exactly', async () => {
    const config = { ...embeddedConfig(64, 64, 1), ffnSize: 32 };
    const learner = await TfjsLearner.open({ init: { config, seed: 3 }, optimizer: { kind: 'muon' } });
    const batch = packRows(
      tinyRows,
      constantRows(tinyRows, () => 1),
    );
    const first = await learner.update(batch, { kind: 'sft' }, step);
    for (let i = 0; i < 10; i++) await learner.update(batch, { kind: 'sft' }, step);
    const last = await learner.update(batch, { kind: 'sft' }, step);
    expect(first['loss/sft']).toBeCloseTo(Math.log(64), 0);
    expect(last['loss/sft']).toBeLessThan(first['loss/sft']! / 2);
    const folder = scratch();
    await learner.save(folder);
    const again = await TfjsLearner.open({ checkpoint: folder });
    expect((await again.score(batch)).logprobs_T).toEqual((await learner.score(batch)).logprobs_T);
    expect((await weightsOf(again)).equals(await weightsOf(learner))).toBe(true);
  });

  it('refuses half a checkpoint, and the moments of another optimizer', async () => {
    const learner = await open();
    await expect(learner.load(tinyCheckpoint)).rejects.toMatchObject({ code: 'LEARNER_E_CHECKPOINT' });
    const folder = scratch();
    await (await open('muon')).save(folder);
    await expect(learner.load(folder)).rejects.toMatchObject({ code: 'LEARNER_E_OPTIMIZER' });
  });
});
