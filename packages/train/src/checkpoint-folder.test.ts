import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { assertVocabulary, checkpointFolder } from './checkpoint-folder.js';

const shipped = fileURLToPath(new URL('../../../datasets/cold-start', import.meta.url));

/** Empty files by these names, and an index where there are shards. */
function folderOf(directory: string, files: readonly string[]): string {
  mkdirSync(directory, { recursive: true });
  const shards = files.filter((name) => name.startsWith('model-'));
  for (const name of files) writeFileSync(join(directory, name), '{}');
  if (shards.length) {
    const weight_map = Object.fromEntries(shards.map((name, i) => [`tensor.${i}`, name]));
    writeFileSync(join(directory, 'model.safetensors.index.json'), JSON.stringify({ weight_map }));
  }
  return directory;
}
const temporary = (): string => mkdtempSync(join(tmpdir(), 'checkpoint-'));
const SHARDED = ['config.json', 'tokenizer.json', 'model-1.safetensors', 'model-2.safetensors'];

afterEach(() => vi.unstubAllEnvs());

describe('checkpointFolder', () => {
  it('finds what is shipped from anywhere, one file of weights or shards', async () => {
    expect(await checkpointFolder('datasets/cold-start', 'policy.checkpoint')).toMatch(
      /datasets\/cold-start$/,
    );
    expect(await checkpointFolder(shipped, 'policy.checkpoint')).toBe(shipped);
    const sharded = folderOf(temporary(), SHARDED);
    expect(await checkpointFolder(sharded, 'policy.checkpoint')).toBe(sharded);
  });

  it('takes hf: names from the hub’s cache, and says when it has none', async () => {
    const home = temporary();
    vi.stubEnv('HF_HOME', home);
    vi.stubEnv('HF_HUB_OFFLINE', '1');
    vi.stubEnv('HF_HUB_CACHE', join(home, 'hub'));
    const model = join(home, 'hub', 'models--tiny--policy');
    mkdirSync(join(model, 'refs'), { recursive: true });
    writeFileSync(join(model, 'refs', 'main'), 'abc');
    const snapshot = folderOf(join(model, 'snapshots', 'abc'), SHARDED);
    expect(await checkpointFolder('hf:tiny/policy', 'policy.checkpoint')).toBe(snapshot);
    await expect(checkpointFolder('hf:tiny/other', 'policy.checkpoint')).rejects.toMatchObject({
      code: 'LEARNER_E_HUB',
    });
  });

  it('names the file that is missing, a shard too', async () => {
    const refused = (missing: string) => ({
      code: 'CHECKPOINT_E_MISSING',
      message: expect.stringContaining(`has no ${missing}`) as string,
      data: { field: '--checkpoint' },
    });
    for (const [left, missing] of [
      [['config.json', 'model.safetensors'], 'tokenizer.json'],
      [['config.json', 'tokenizer.json'], 'model.safetensors'],
    ] as const) {
      const folder = folderOf(temporary(), left);
      await expect(checkpointFolder(folder, '--checkpoint')).rejects.toMatchObject(refused(missing));
    }
    const sharded = folderOf(temporary(), SHARDED);
    rmSync(join(sharded, 'model-2.safetensors'));
    await expect(checkpointFolder(sharded, '--checkpoint')).rejects.toMatchObject(
      refused('model-2.safetensors'),
    );
  });
});

describe('assertVocabulary', () => {
  it('refuses a tokenizer with more ids than the model has rows, and names both', () => {
    expect(() => assertVocabulary(shipped, 768)).not.toThrow();
    expect(() => assertVocabulary(shipped, 769)).toThrow(/its tokenizer has 769 ids, its model 768/);
  });
});
