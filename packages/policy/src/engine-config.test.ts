import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readJson, writeJsonAtomic } from '@treeward/base';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { createEngine, type EngineConfig } from './engine-config.js';

const dir = mkdtempSync(join(tmpdir(), 'policy-config-'));
afterAll(() => rmSync(dir, { recursive: true }));

describe('createEngine', () => {
  it('notes what is loaded and starts from the note', async () => {
    const tokenizer = fileURLToPath(new URL('./__fixtures__/tokenizer.json', import.meta.url));
    const config: EngineConfig = {
      kind: 'scripted',
      scripts: dir,
      tokenizer,
      state: join(dir, 'state.json'),
    };
    const policy = { id: 'run', version: 4 };
    await (await createEngine(config)).load(policy, { format: 'none', path: '' });
    expect(readJson(config.state!)).toEqual({ policy, weights: { format: 'none', path: '' } });
    expect((await (await createEngine(config)).describe()).policy).toEqual(policy);
  });

  it('starts without a policy, and says so, when the noted weights are gone', async () => {
    const state = join(dir, 'old.json');
    writeJsonAtomic(state, {
      policy: { id: 'old', version: 9 },
      weights: { format: 'gguf', path: join(dir, 'gone') },
    });
    const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const engine = await createEngine({ kind: 'llama', state });
    expect(stderr).toHaveBeenCalledWith(expect.stringMatching(/without a policy: cannot read .*gone/));
    stderr.mockRestore();
    expect((await engine.describe()).policy).toBeNull();
    await engine.close();
  });

  it('names the field of a value it cannot use', async () => {
    await expect(createEngine({ kind: 'llama', sequences: 0 })).rejects.toThrow(/engine.sequences is 0/);
    await expect(createEngine({ kind: 'x' } as unknown as EngineConfig)).rejects.toThrow(
      /engine.kind is "x"/,
    );
  });
});
