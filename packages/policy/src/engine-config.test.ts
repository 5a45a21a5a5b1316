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

  it('names the field of a value it cannot use, unknown ones too', async () => {
    const refused = (config: unknown) => expect(createEngine(config as EngineConfig)).rejects;
    await refused({ kind: 'llama', sequences: 0 }).toThrow(/engine.sequences is 0/);
    await refused({ kind: 'llama', sequenzes: 4 }).toThrow(/sequenzes/);
    await refused({ kind: 'x' }).toThrow(/engine.kind is "x".*llama, scripted, openai-compatible, anthropic/);
    await refused({ kind: 'scripted', scripts: dir }).toThrow(/either `tokenizer` or `template`/);
    const upstream = { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1', model: 'm' };
    await refused({ ...upstream, mode: 'completions' }).toThrow(/needs `vocabSize` and `contextLength`/);
    await refused({ ...upstream, mode: 'completions', apiKey: 'secret' }).toThrow(/apiKey/);
    await refused({ ...upstream, mode: 'chat', apiKeyEnv: 'TREEWARD_NO_SUCH_KEY' }).toThrow(
      /engine.apiKeyEnv names TREEWARD_NO_SUCH_KEY, which is not set/,
    );
  });

  it('builds every kind', async () => {
    const tokenizer = fileURLToPath(new URL('./__fixtures__/tokenizer.json', import.meta.url));
    const upstream = { baseUrl: 'http://127.0.0.1:1/v1', model: 'm', timeout: 10, retries: 0 };
    const kinds: EngineConfig[] = [
      { kind: 'llama', contextLength: 64 },
      { kind: 'scripted', scripts: dir, template: { kind: 'compact', tokenizer } },
      { ...upstream, kind: 'openai-compatible', mode: 'completions', vocabSize: 300, contextLength: 64 },
      { ...upstream, kind: 'openai-compatible', mode: 'chat' },
      { ...upstream, kind: 'anthropic' },
    ];
    const facts = await Promise.all(kinds.map(async (kind) => (await createEngine(kind)).describe()));
    expect(facts.map(({ name, ids, logprobs }) => [name, ids, logprobs])).toEqual([
      ['llama', true, 'processed'],
      ['scripted', true, 'processed'],
      ['openai-compatible', true, 'raw'],
      ['openai-compatible', false, 'none'],
      ['anthropic', false, 'none'],
    ]);
  });
});
