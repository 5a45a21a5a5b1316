import { TreewardError } from '@treeward/base';
import type { EffectiveSampling, Engine, EngineFacts, Sampled, SampleRequest } from '../types.js';
import { compareTemperatures, type Draws, type TemperatureFindings } from './temperature.js';

export interface ProbeOptions {
  /** Tried in turn until one of them has a next token that is neither certain nor all alike. @default six short ones of arbitrary ids */
  prompts?: readonly Int32Array[];
  /** One-token samples per temperature and prompt. @default 64 */
  draws?: number;
  signal?: AbortSignal;
}

const LOW = 0.25;

/** Few enough that all of them come up, so that the draws can be counted against the reports. */
const TOP_K = 8;

/** Asked for by the longer replies that tell whether a seed is kept. */
const SEED_TOKENS = 12;

/**
 * Finds out what an engine does instead of believing what it says: draws single tokens at temperature 1 and 0.25 and a few replies with
 * equal seeds. What the distribution at hand cannot decide is null, or stays as the engine says (`logprobs`). Weights must be loaded.
 *
 * @throws TreewardError what the engine throws for a request that it should be able to answer
 */
export async function probeEngine(engine: Engine, options: ProbeOptions = {}): Promise<EngineFacts> {
  const facts = await engine.describe();
  const nothing = { ...facts, ids: false, logprobs: 'none', temperature: null, seed: null } as const;
  if (!facts.ids) return nothing;
  const probe = new Probe(engine, options);
  const prompts = options.prompts ?? defaultPrompts(facts);
  let found: TemperatureFindings = { logprobs: null, reached: null };
  let silent = true;
  for (const prompt of prompts) {
    const [one, low] = [await probe.draws(prompt, 1), await probe.draws(prompt, LOW)];
    if (!one || !low) return nothing;
    silent &&= one.logprobs.size === 0 || low.logprobs.size === 0;
    const here = compareTemperatures(one, low, LOW);
    found = { logprobs: found.logprobs ?? here.logprobs, reached: found.reached ?? here.reached };
    if (silent || (found.logprobs !== null && found.reached !== null)) break;
  }
  const logprobs = silent || found.logprobs === 'inconsistent' ? 'none' : (found.logprobs ?? facts.logprobs);
  return { ...facts, logprobs, temperature: found.reached, seed: await probe.keepsSeeds(prompts[0]!) };
}

class Probe {
  readonly #engine: Engine;
  readonly #options: ProbeOptions;

  constructor(engine: Engine, options: ProbeOptions) {
    this.#engine = engine;
    this.#options = options;
  }

  /** Null when ids do not come back, or not those that were sent. */
  async draws(prompt: Int32Array, temperature: number): Promise<Draws | null> {
    const { draws = 64 } = this.#options;
    const all = await Promise.all(
      Array.from({ length: draws }, (_, i) =>
        this.#sample(prompt, { temperature, topK: TOP_K, maxTokens: 1, seed: `probe/${temperature}/${i}x` }),
      ),
    );
    const counts = new Map<number, number>();
    const logprobs = new Map<number, number>();
    for (const sampled of all) {
      const id = sampled?.tokens[0];
      if (!sampled || id === undefined || sampled.prompt.join() !== prompt.join()) return null;
      counts.set(id, (counts.get(id) ?? 0) + 1);
      const logprob = sampled.logprobs[0] ?? NaN;
      if (Number.isFinite(logprob)) logprobs.set(id, logprob);
    }
    return { counts, logprobs };
  }

  /** Null when all seeds give the same anyway. */
  async keepsSeeds(prompt: Int32Array): Promise<boolean | null> {
    const seeds = ['a', 'b', 'c', 'd'].map((name) => `probe/seed/${name}`);
    const ask = async (seed: string): Promise<string> => {
      const sampled = await this.#sample(prompt, { temperature: 1, topK: 0, maxTokens: SEED_TOKENS, seed });
      return sampled ? sampled.tokens.join() : '';
    };
    const [first, second] = [await Promise.all(seeds.map(ask)), await Promise.all(seeds.map(ask))];
    if (first.some((tokens, i) => tokens !== second[i])) return false;
    return new Set(first).size > 1 ? true : null;
  }

  async #sample(
    prompt: Int32Array,
    sampling: Pick<EffectiveSampling, 'temperature' | 'topK' | 'maxTokens' | 'seed'>,
  ): Promise<Sampled | null> {
    const request: SampleRequest = {
      prompt,
      stopIds: [],
      tag: 'probe',
      sampling: { ...sampling, topP: 1, bannedIds: [] },
    };
    try {
      const { signal } = this.#options;
      return await this.#engine.sample('current', request, signal ? { signal } : {});
    } catch (error) {
      if (TreewardError.isInstance(error) && error.code === 'ENGINE_E_REPLY') return null;
      throw error;
    }
  }
}

/** Ids spread over the vocabulary: which ones does not matter, only that some next tokens are uncertain. */
function defaultPrompts({ vocabSize }: EngineFacts): Int32Array[] {
  return Array.from({ length: 6 }, (_, salt) =>
    Int32Array.from({ length: 4 + 3 * salt }, (_, i) => (11 + 37 * salt + 101 * i) % Math.max(1, vocabSize)),
  );
}
