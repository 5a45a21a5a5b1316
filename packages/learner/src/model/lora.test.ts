import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readJson, readTensors } from '@treeward/base';
import { describe, expect, it } from 'vitest';
import { readWeights } from '../checkpoint/weights.js';
import { constantRows, packRows, tinyCheckpoint, tinyRows } from '../testing/batches.js';
import { TfjsLearner } from '../tfjs-learner.js';
import { ALL_LINEARS } from './lora.js';

const lora = { rank: 2, alpha: 4, targets: [...ALL_LINEARS] };
const step = { lr: 1e-2, maxGradNorm: 1 };
const batch = packRows(
  tinyRows,
  constantRows(tinyRows, () => 1),
);
const scratch = (): string => mkdtempSync(join(tmpdir(), 'treeward-lora-'));

describe('lora', () => {
  it('starts as the base, learns, and leaves the base as it was', async () => {
    const base = await TfjsLearner.open({ checkpoint: tinyCheckpoint });
    const learner = await TfjsLearner.open({ checkpoint: tinyCheckpoint, lora });
    expect((await learner.capabilities()).fullFineTune).toBe(false);
    expect((await learner.score(batch)).logprobs_T).toEqual((await base.score(batch)).logprobs_T);
    const losses: number[] = [];
    for (let i = 0; i < 8; i++)
      losses.push((await learner.update(batch, { kind: 'sft' }, step))['loss/sft']!);
    expect(losses.at(-1)).toBeLessThan(losses[0]! * 0.8);
    const folder = scratch();
    await learner.save(folder);
    const original = readWeights(tinyCheckpoint).params;
    const merged = readWeights(folder).params;
    for (const [name, { data }] of original) {
      const same = Buffer.from(data.buffer).equals(Buffer.from(merged.get(name)!.data.buffer));
      expect(same, name).toBe(!ALL_LINEARS.some((linear) => name.includes(`.${linear}.`)));
    }
  });

  it('writes adapters in the PEFT format, and merged weights that say the same', async () => {
    const learner = await TfjsLearner.open({ checkpoint: tinyCheckpoint, lora });
    for (let i = 0; i < 3; i++) await learner.update(batch, { kind: 'sft' }, step);
    const folder = scratch();
    await learner.save(folder);
    expect(readJson(join(folder, 'adapter_config.json'))).toMatchObject({
      peft_type: 'LORA',
      r: 2,
      lora_alpha: 4,
      target_modules: lora.targets,
    });
    const { tensors } = readTensors(join(folder, 'adapter_model.safetensors'));
    expect(tensors.size).toBe(2 * 7 * 2);
    expect(tensors.get('base_model.model.model.layers.1.mlp.down_proj.lora_A.weight')!.shape).toEqual([
      2, 24,
    ]);
    const merged = await TfjsLearner.open({ checkpoint: folder });
    const [a, b] = [await merged.score(batch), await learner.score(batch)];
    a.logprobs_T.forEach((x, t) => {
      if (batch.owned_T[t]) expect(Math.abs(x - b.logprobs_T[t]!)).toBeLessThan(1e-5);
    });
  });

  it('save, load, continue is bit-exact', async () => {
    const straight = await TfjsLearner.open({ checkpoint: tinyCheckpoint, lora });
    await straight.update(batch, { kind: 'sft' }, step);
    const folder = scratch();
    await straight.save(folder);
    await straight.update(batch, { kind: 'sft' }, step);
    const resumed = await TfjsLearner.open({ checkpoint: tinyCheckpoint, lora });
    await resumed.load(folder);
    await resumed.update(batch, { kind: 'sft' }, step);
    const bytes = async (learner: TfjsLearner): Promise<Buffer> => {
      const to = scratch();
      await learner.save(to);
      return readFileSync(join(to, 'adapter_model.safetensors'));
    };
    expect((await bytes(resumed)).equals(await bytes(straight))).toBe(true);
  });

  it('refuses a target that is no linear, and a value head on a frozen trunk', async () => {
    await expect(
      TfjsLearner.open({ checkpoint: tinyCheckpoint, lora: { ...lora, targets: ['lm_head'] } }),
    ).rejects.toMatchObject({ code: 'LEARNER_E_OPTIONS' });
    await expect(
      TfjsLearner.open({ checkpoint: tinyCheckpoint, lora, critic: { kind: 'head' } }),
    ).rejects.toMatchObject({ code: 'LEARNER_E_OPTIONS' });
  });
});
