import { fork, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEngine, engineEnvironment, engineMain } from '../engine-config.js';
import { remoteEngine } from '../engine-server.js';
import { assertTrainable } from '../probe/assert-trainable.js';
import { probeEngine } from '../probe/probe-engine.js';
import { serveCompletions } from '../testing/completions-server.js';
import { engineConformance } from '../testing/engine-conformance.js';
import { serveAnswers, type Answer } from '../testing/protocol-server.js';
import { writeTinyGguf } from '../testing/tiny-gguf.js';
import { randomWeights, TINY } from '../testing/tiny-model.js';
import type { Engine, SampleRequest } from '../types.js';

// A real round trip: engine -> HTTP -> the protocol's server -> llama.cpp, one process per version of the weights.
const dir = mkdtempSync(join(tmpdir(), 'policy-http-'));
const files = ['one', 'two'].map((name) => join(dir, `${name}.gguf`)) as [string, string];
const children: ChildProcess[] = [];
const models = new Map<string, Engine>();
const LIMITS = { vocabSize: TINY.vocab_size, contextLength: 160 };

async function publish(model: string, path: string): Promise<void> {
  if (models.has(model)) return;
  const socket = join(dir, `${children.length}.sock`);
  const env = { ...process.env, ...engineEnvironment };
  children.push(
    fork(engineMain, [socket, JSON.stringify({ kind: 'llama', contextLength: 160, sequences: 4 })], {
      execArgv: [],
      env,
    }),
  );
  const engine = remoteEngine(socket, { retryFor: 60_000 });
  await engine.load({ id: model, version: 0 }, { format: 'gguf', path });
  models.set(model, engine);
}

let server: Server;
let baseUrl: string;
let inner: Engine;
let engine: Engine;
beforeAll(async () => {
  files.forEach((file, i) => writeTinyGguf(file, TINY, randomWeights(TINY, ['one', 'two'][i]!)));
  ({ server, baseUrl } = await serveCompletions((model) => models.get(model)));
  inner = await createEngine({
    kind: 'openai-compatible',
    mode: 'completions',
    baseUrl,
    model: '{id}@{version}',
    logprobs: 'processed',
    ...LIMITS,
  });
  engine = {
    ...inner,
    describe: () => inner.describe(),
    sample: (...args) => inner.sample(...args),
    close: () => inner.close(),
    // Weights get to such a server by its own ways; the engine then asks for them by name.
    load: async (policy, weights) => {
      await publish(`${policy.id}@${policy.version}`, weights.path);
      await inner.load(policy, { format: 'none', path: '' });
    },
  };
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await Promise.all(
    children.map((child) => {
      const gone = new Promise((resolve) => child.on('exit', resolve));
      child.disconnect();
      return gone;
    }),
  );
  rmSync(dir, { recursive: true });
});

const bannedIds = [0, 1, 2, 3, 4];
engineConformance('openai-compatible, completions', {
  engine: () => engine,
  weights: () => [
    { format: 'gguf', path: files[0] },
    { format: 'gguf', path: files[1] },
  ],
  ...LIMITS,
  bannedIds,
  stopIds: Array.from({ length: 26 }, (_, i) => 240 + i),
  weightsMatter: true,
});

const request: SampleRequest = {
  prompt: Int32Array.of(10, 11, 12),
  stopIds: [20],
  tag: 't',
  sampling: { temperature: 0.7, topP: 0.9, topK: 5, bannedIds, maxTokens: 4, seed: 's' },
};

describe('CompletionsEngine', () => {
  it('is found to be trainable by the probe, over the wire', async () => {
    const facts = await probeEngine(engine);
    expect(facts).toMatchObject({ ids: true, logprobs: 'processed', temperature: true, seed: true });
    expect(() => assertTrainable(facts, request.sampling)).not.toThrow();
  });

  describe('in front of a server that is not what it should be', () => {
    let answers: Answer[];
    let other: Server;
    let wrong: Engine;
    let seen: Awaited<ReturnType<typeof serveAnswers>>['seen'];
    const say = (choice: object): void => {
      answers.splice(0, answers.length, { status: 200, body: { choices: [choice] } });
    };
    beforeAll(async () => {
      const fake = await serveAnswers();
      ({ answers, seen, server: other } = fake);
      wrong = await createEngine({
        kind: 'openai-compatible',
        mode: 'completions',
        baseUrl: `${fake.url}/v1`,
        model: 'm',
        timeout: 300,
        retries: 1,
        ...LIMITS,
      });
      await wrong.load({ id: 'm', version: 0 }, { format: 'none', path: '' });
    });
    afterAll(() => {
      other.closeAllConnections();
      other.close();
    });

    it('asks as vLLM wants to be asked', async () => {
      say({ token_ids: [7, 20], finish_reason: 'stop', logprobs: { token_logprobs: [-1, -2] } });
      const sampled = await wrong.sample('current', request);
      expect([...sampled.tokens, ...sampled.logprobs, sampled.finish]).toEqual([7, 20, -1, -2, 'stop']);
      expect(seen.at(-1)!.path).toBe('/v1/completions');
      expect(seen.at(-1)!.body).toEqual({
        model: 'm',
        prompt: [10, 11, 12],
        max_tokens: 4,
        temperature: 0.7,
        top_p: 0.9,
        top_k: 5,
        seed: expect.any(Number),
        logit_bias: { 0: -100, 1: -100, 2: -100, 3: -100, 4: -100 },
        logprobs: 0,
        return_token_ids: true,
        stop_token_ids: [20],
        ignore_eos: true,
      });
    });

    it('refuses answers without ids, of another prompt, or of another vocabulary', async () => {
      const field = () =>
        wrong.sample('current', request).catch((error: { code: string; data: object }) => error);
      say({ text: 'hello', finish_reason: 'stop' });
      expect(await field()).toMatchObject({
        code: 'ENGINE_E_REPLY',
        data: { field: 'choices[0].token_ids' },
      });
      say({ token_ids: [7], prompt_token_ids: [1, 10, 11, 12], finish_reason: 'stop' });
      expect(await field()).toMatchObject({ data: { field: 'choices[0].prompt_token_ids' } });
      say({ token_ids: [7, 9999], finish_reason: 'stop' });
      expect(await field()).toMatchObject({ data: { field: 'choices[0].token_ids[1]' } });
    });

    it('says NaN where a log-probability is missing, and the probe says that there are none', async () => {
      say({ token_ids: [7], finish_reason: 'length' });
      expect((await wrong.sample('current', request)).logprobs[0]).toBeNaN();
      expect(await probeEngine(wrong)).toMatchObject({ ids: true, logprobs: 'none' });
      say({ text: 'only text', finish_reason: 'length' });
      expect(await probeEngine(wrong)).toMatchObject({ ids: false, logprobs: 'none' });
    });

    it.each([
      [{ status: 500, body: { error: { message: 'down' } } }, 'ENGINE_E_UPSTREAM'],
      [{ status: 400, body: { error: { message: 'bad' } } }, 'ENGINE_E_REQUEST'],
      ['drop' as const, 'ENGINE_E_UNREACHABLE'],
      ['hang' as const, 'ENGINE_E_TIMEOUT'],
    ])('fails after %o as %s', async (answer, code) => {
      answers.splice(0, answers.length, answer);
      await expect(wrong.sample('current', request)).rejects.toMatchObject({ code });
    });

    it('does not pretend that it can change the weights', async () => {
      const gguf = { format: 'gguf', path: files[0] } as const;
      await expect(wrong.load({ id: 'm', version: 0 }, gguf)).rejects.toMatchObject({
        code: 'ENGINE_E_WEIGHTS',
      });
      await expect(wrong.load({ id: 'm', version: 2 }, { format: 'none', path: '' })).rejects.toThrow(
        /\{version\}/,
      );
    });
  });
});
