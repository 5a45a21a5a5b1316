import { fileURLToPath } from 'node:url';
import { randomStream, TreewardError } from '@treeward/base';
import { describe, expect, it } from 'vitest';
import { ScriptedEngine } from '../engines/scripted.js';
import { CompactTemplate } from '../templates/compact.js';
import { BpeTokenizer } from '../tokenizer/bpe-tokenizer.js';
import type { Engine, EngineFacts, Sampled } from '../types.js';
import { assertTrainable } from './assert-trainable.js';
import { probeEngine } from './probe-engine.js';

const VOCAB = 50;

interface Faults {
  /** Log-probabilities at temperature 1 over the whole vocabulary, whatever was drawn from. */
  raw?: boolean;
  /** Draws at temperature 1 whatever is asked. */
  ignoresTemperature?: boolean;
  /** And says the log-probabilities of what it was asked for. */
  pretends?: boolean;
  ignoresSeed?: boolean;
  ids?: 'none' | 'altered-prompt';
  logprobs?: 'none' | 'noise';
  /** Spread of the logits. */
  spread?: number;
}

/** An engine whose distribution is known, right or deliberately wrong. */
function softmaxEngine(faults: Faults = {}): Engine {
  let calls = 0;
  const facts: EngineFacts = {
    name: 'softmax',
    ids: true,
    logprobs: 'processed',
    contextLength: 100,
    vocabSize: VOCAB,
    policy: { id: 'p', version: 0 },
  };
  return {
    describe: async () => facts,
    load: async () => undefined,
    close: async () => undefined,
    sample: async (_, { prompt, sampling }): Promise<Sampled> => {
      if (faults.ids === 'none') throw new TreewardError('ENGINE_E_REPLY', 'no ids');
      const random = randomStream(faults.ignoresSeed ? `call ${calls++}` : sampling.seed);
      const tokens: number[] = [];
      const logprobs: number[] = [];
      for (let t = 0; t < sampling.maxTokens; t++) {
        const context = randomStream('logits', [...prompt, ...tokens].join());
        const logits = Array.from({ length: VOCAB }, () => (faults.spread ?? 2) * context.normal());
        const kept = logits
          .map((_, id) => id)
          .sort((a, b) => logits[b]! - logits[a]!)
          .slice(0, sampling.topK > 0 ? sampling.topK : VOCAB);
        const drawnAt = faults.ignoresTemperature ? 1 : sampling.temperature;
        const saidAt = faults.ignoresTemperature && !faults.pretends ? 1 : sampling.temperature;
        const drawn = logSoftmax(logits, kept, drawnAt);
        let rest = random.next();
        const id = kept.find((candidate) => (rest -= Math.exp(drawn.get(candidate)!)) < 0) ?? kept[0]!;
        const everything = logits.map((_, i) => i);
        const said = faults.raw ? logSoftmax(logits, everything, 1) : logSoftmax(logits, kept, saidAt);
        tokens.push(id);
        const noise = faults.logprobs === 'noise' ? -3 * random.next() : 0;
        logprobs.push(faults.logprobs === 'none' ? NaN : said.get(id)! + noise);
      }
      return {
        prompt: faults.ids === 'altered-prompt' ? Int32Array.of(1, ...prompt) : prompt,
        tokens: Int32Array.from(tokens),
        logprobs: Float32Array.from(logprobs),
        sampling,
        finish: 'length',
        policy: facts.policy!,
      };
    },
  };
}

function logSoftmax(
  logits: readonly number[],
  ids: readonly number[],
  temperature: number,
): Map<number, number> {
  const most = Math.max(...ids.map((id) => logits[id]!));
  const shifted = ids.map((id): [number, number] => [id, (logits[id]! - most) / temperature]);
  const total = Math.log(shifted.reduce((sum, [, value]) => sum + Math.exp(value), 0));
  return new Map(shifted.map(([id, value]) => [id, value - total]));
}

type Found = Pick<EngineFacts, 'ids' | 'logprobs' | 'temperature' | 'seed'>;

describe('probeEngine', () => {
  it.each<[string, Faults, Found]>([
    ['a right one', {}, { ids: true, logprobs: 'processed', temperature: true, seed: true }],
    ['raw log-probabilities', { raw: true }, { ids: true, logprobs: 'raw', temperature: true, seed: true }],
    [
      'a temperature that does not arrive',
      { ignoresTemperature: true },
      { ids: true, logprobs: 'raw', temperature: false, seed: true },
    ],
    [
      'a temperature that only the reports know',
      { ignoresTemperature: true, pretends: true },
      { ids: true, logprobs: 'processed', temperature: false, seed: true },
    ],
    [
      'seeds that are not kept',
      { ignoresSeed: true },
      { ids: true, logprobs: 'processed', temperature: true, seed: false },
    ],
    ['no ids', { ids: 'none' }, { ids: false, logprobs: 'none', temperature: null, seed: null }],
    [
      'another prompt than was sent',
      { ids: 'altered-prompt' },
      { ids: false, logprobs: 'none', temperature: null, seed: null },
    ],
    [
      'no log-probabilities',
      { logprobs: 'none' },
      { ids: true, logprobs: 'none', temperature: null, seed: true },
    ],
    [
      'log-probabilities of nothing',
      { logprobs: 'noise' },
      { ids: true, logprobs: 'none', temperature: null, seed: true },
    ],
    [
      'sharp distributions',
      { spread: 6 },
      { ids: true, logprobs: 'processed', temperature: true, seed: true },
    ],
    [
      'flat distributions',
      { spread: 0.5 },
      { ids: true, logprobs: 'processed', temperature: true, seed: true },
    ],
    [
      'flat and raw',
      { spread: 0.5, raw: true },
      { ids: true, logprobs: 'raw', temperature: true, seed: true },
    ],
    [
      'distributions with nothing to see',
      { spread: 0 },
      { ids: true, logprobs: 'processed', temperature: null, seed: true },
    ],
  ])('sees through %s', async (_, faults, found) => {
    expect(await probeEngine(softmaxEngine(faults))).toMatchObject(found);
  });

  it('leaves undecided what prepared replies cannot show', async () => {
    const tokenizer = fileURLToPath(new URL('../__fixtures__/tokenizer.json', import.meta.url));
    const engine = new ScriptedEngine({
      template: new CompactTemplate(BpeTokenizer.load(tokenizer)),
      scripts: '/nowhere',
    });
    expect(await probeEngine(engine)).toMatchObject({
      ids: true,
      logprobs: 'processed',
      temperature: null,
      seed: null,
    });
  });

  it('asks an engine without ids nothing', async () => {
    const hosted: Engine = {
      ...softmaxEngine(),
      describe: async () => ({ ...(await softmaxEngine().describe()), ids: false, logprobs: 'none' }),
      sample: () => Promise.reject(new Error('asked')),
    };
    expect(await probeEngine(hosted)).toMatchObject({
      ids: false,
      logprobs: 'none',
      temperature: null,
      seed: null,
    });
  });

  it('does not swallow what is wrong with the engine itself', async () => {
    const down: Engine = {
      ...softmaxEngine(),
      sample: () => Promise.reject(new TreewardError('ENGINE_E_NO_POLICY', 'no weights')),
    };
    await expect(probeEngine(down)).rejects.toMatchObject({ code: 'ENGINE_E_NO_POLICY' });
  });
});

describe('assertTrainable', () => {
  const facts = (found: Partial<EngineFacts>): EngineFacts => ({
    name: 'e',
    ids: true,
    logprobs: 'processed',
    temperature: true,
    contextLength: 1,
    vocabSize: 1,
    policy: null,
    ...found,
  });
  const reasons = (found: Partial<EngineFacts>, sampling: Parameters<typeof assertTrainable>[1]): unknown => {
    try {
      assertTrainable(facts(found), sampling);
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENGINE_E_UNTRAINABLE' });
      return (error as TreewardError).data['reasons'];
    }
    return [];
  };

  it('lets right combinations pass', () => {
    expect(reasons({}, { temperature: 0.7, topK: 5, bannedIds: [1] })).toEqual([]);
    expect(reasons({ logprobs: 'raw' }, { temperature: 1 })).toEqual([]);
    expect(reasons({ temperature: false }, { temperature: 1 })).toEqual([]);
    expect(reasons({ temperature: null }, { temperature: 0.7 })).toEqual([]);
  });

  it('names every wrong one', () => {
    expect(reasons({ ids: false, logprobs: 'none' }, { temperature: 1 })).toEqual([
      expect.stringContaining('no token ids'),
      expect.stringContaining('no usable log-probabilities'),
    ]);
    expect(reasons({ logprobs: 'raw' }, { temperature: 0.7 })).toEqual([
      expect.stringMatching(/raw.*under temperature 0.7$/),
    ]);
    expect(reasons({ logprobs: 'raw' }, { temperature: 1, topP: 0.9, topK: 4, bannedIds: [0] })).toEqual([
      expect.stringMatching(/under topP 0.9, topK 4, banned ids$/),
    ]);
    expect(reasons({ temperature: false }, { temperature: 0.7 })).toEqual([
      expect.stringMatching(/does not reach its sampler, and 0.7/),
    ]);
  });
});
