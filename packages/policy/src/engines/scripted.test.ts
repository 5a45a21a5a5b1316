import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { CompactTemplate } from '../templates/compact.js';
import { engineConformance } from '../testing/engine-conformance.js';
import { BpeTokenizer } from '../tokenizer/bpe-tokenizer.js';
import type { SampleRequest } from '../types.js';
import { ScriptedEngine } from './scripted.js';

const template = new CompactTemplate(
  BpeTokenizer.load(fileURLToPath(new URL('../__fixtures__/tokenizer.json', import.meta.url))),
);
const scripts = mkdtempSync(join(tmpdir(), 'policy-scripted-'));
afterAll(() => rmSync(scripts, { recursive: true }));

const chooser = new ScriptedEngine({
  template,
  contextLength: 300,
  choose: (_tag, _call, _prompt, random) => {
    const words = ['Done.', 'I am finished with all of it.', 'ok'];
    return { parts: [{ type: 'text', text: random.pick(words) }], logprob: -Math.log(words.length) };
  },
});
engineConformance('scripted', {
  engine: () => chooser,
  weights: () => [
    { format: 'none', path: '' },
    { format: 'none', path: '' },
  ],
  vocabSize: template.vocabSize,
  contextLength: 300,
  bannedIds: template.bannedIds,
  stopIds: template.stopIds,
  weightsMatter: false,
});

describe('ScriptedEngine', () => {
  const request = (tag: string): SampleRequest => ({
    prompt: Int32Array.of(1, 20, 21, 3),
    stopIds: template.stopIds,
    tag,
    sampling: { temperature: 1, topP: 1, topK: 0, bannedIds: template.bannedIds, maxTokens: 90, seed: 's' },
  });
  const say = async (engine: ScriptedEngine, tag: string): Promise<string> =>
    template.decode((await engine.sample('current', request(tag))).tokens);

  it('answers calls without tools beside the others, in whatever order they come', async () => {
    const turns = ['one', 'two'].map((text) => [{ type: 'text', text }]);
    writeFileSync(
      join(scripts, 'titled.json'),
      JSON.stringify({ replies: turns, side: [{ type: 'text', text: 'A title' }] }),
    );
    const user = template.message({ role: 'user', text: 'hi' });
    const tools = [{ name: 'Read', description: '', parameters: {} }];
    const title = Int32Array.of(...template.head([]), ...user, ...template.generation);
    const work = Int32Array.of(...template.head(tools), ...user, ...template.generation);
    for (const order of [
      [title, work, work],
      [work, title, work],
      [work, work, title],
    ]) {
      const engine = new ScriptedEngine({ template, scripts });
      const said: string[] = [];
      for (const [call, prompt] of order.entries()) {
        const asked = request('titled');
        const sampling = { ...asked.sampling, seed: `titled/${call}` };
        const { tokens } = await engine.sample('current', { ...asked, prompt, sampling });
        said.push(template.decode(tokens));
      }
      expect(said.map((text) => text.replace(/<.*>$/, ''))).toEqual(
        order.map((prompt, at) =>
          prompt === title ? 'A title' : order.slice(0, at).includes(work) ? 'two' : 'one',
        ),
      );
    }
  });

  it('plays reply k at call k of a tag, raw ids as they are, then says Done.', async () => {
    const call = { type: 'tool_call', id: '', name: 'Read', arguments: { file_path: 'a.txt' } };
    writeFileSync(join(scripts, 'r1.json'), JSON.stringify({ replies: [[call], [5, 5, 8], []] }));
    const engine = new ScriptedEngine({ template, scripts });
    expect(await say(engine, 'r1')).toBe('<call>Read<arg>file_path<eq>a.txt<end>');
    expect(await say(engine, 'other')).toBe('Done.<eot>');
    expect(await say(engine, 'r1')).toBe('<call><call><end>');
    expect(await say(engine, 'r1')).toBe('');
    expect(await say(engine, 'r1')).toBe('Done.<eot>');
    expect(await say(new ScriptedEngine({ template, scripts }), 'r1')).toContain('<call>Read');
  });

  it('takes the number of the call from a seed that ends with one, so a repeated rollout hears the same', async () => {
    const replies = ['zero', 'one'].map((text) => [{ type: 'text', text }]);
    writeFileSync(join(scripts, 'seeded.json'), JSON.stringify({ replies }));
    const engine = new ScriptedEngine({ template, scripts });
    const call = async (seed: string): Promise<string> => {
      const { sampling, ...rest } = request('seeded');
      const sampled = await engine.sample('current', { ...rest, sampling: { ...sampling, seed } });
      return template.decode(sampled.tokens);
    };
    expect([await call('7/r/1'), await call('7/r/0'), await call('7/r/1')]).toEqual([
      'one<eot>',
      'zero<eot>',
      'one<eot>',
    ]);
  });

  it('gives certainty to every token of a script, and a choice its probability on the first', async () => {
    const certain = await new ScriptedEngine({ template, scripts }).sample('current', request('none'));
    expect([...certain.logprobs]).toEqual([...certain.tokens].map(() => 0));
    const chosen = await chooser.sample('current', request('x'));
    expect(chosen.logprobs.reduce((sum, lp) => sum + lp, 0)).toBeCloseTo(-Math.log(3), 6);
  });

  it('names the file of an unusable script and refuses an ambiguous configuration', async () => {
    writeFileSync(join(scripts, 'bad.json'), '{"replies": "no"}');
    const engine = new ScriptedEngine({ template, scripts });
    await expect(engine.sample('current', request('bad'))).rejects.toMatchObject({
      code: 'ENGINE_E_SCRIPT',
      message: expect.stringContaining('bad.json'),
    });
    expect(() => new ScriptedEngine({ template })).toThrow(/either `scripts` or `choose`/);
  });
});
