import { fork, type ChildProcess } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { engineEnvironment, engineMain, type EngineConfig } from '../engine-config.js';
import { remoteEngine } from '../engine-server.js';
import { probeEngine } from '../probe/probe-engine.js';
import { engineConformance } from '../testing/engine-conformance.js';
import { referenceLogprobs } from '../testing/reference-model.js';
import { writeTinyGguf } from '../testing/tiny-gguf.js';
import { randomWeights, TINY } from '../testing/tiny-model.js';
import type { Engine, SampleRequest } from '../types.js';
import { LlamaEngine } from './llama.js';

// The engine runs as it does in a run: in its own process, from dist.
const dir = mkdtempSync(join(tmpdir(), 'policy-llama-'));
const weights = [randomWeights(TINY, 'one'), randomWeights(TINY, 'two')] as const;
const files = [join(dir, 'one.gguf'), join(dir, 'two.gguf')] as const;
const children: ChildProcess[] = [];
const start = (name: string, config: EngineConfig): { engine: Engine; child: ChildProcess } => {
  const socket = join(dir, `${name}.sock`);
  // vitest's own --conditions would make the child import TypeScript sources.
  const child = fork(engineMain, [socket, JSON.stringify(config)], {
    execArgv: [],
    env: { ...process.env, ...engineEnvironment },
  });
  children.push(child);
  return { engine: remoteEngine(socket, { retryFor: 60_000 }), child };
};
const exited = (child: ChildProcess): Promise<number | string | null> =>
  new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)));

let engine: Engine;
beforeAll(() => {
  files.forEach((file, i) => writeTinyGguf(file, TINY, weights[i]!));
  engine = start('main', { kind: 'llama', contextLength: 160, sequences: 4 }).engine;
});
afterAll(async () => {
  for (const child of children) if (child.connected) child.disconnect();
  const alive = children.filter((child) => child.exitCode === null && child.signalCode === null);
  await Promise.all(alive.map(exited));
  rmSync(dir, { recursive: true });
});

const bannedIds = [0, 1, 2, 3, 4];
const request = (seed: string, sampling: Partial<SampleRequest['sampling']> = {}): SampleRequest => ({
  prompt: Int32Array.from({ length: 24 }, (_, i) => 10 + ((i * 11) % 250)),
  stopIds: [],
  tag: seed,
  sampling: { temperature: 1, topP: 1, topK: 0, bannedIds, maxTokens: 30, seed, ...sampling },
});

engineConformance('llama in its process', {
  engine: () => engine,
  weights: () => [
    { format: 'gguf', path: files[0] },
    { format: 'gguf', path: files[1] },
  ],
  vocabSize: TINY.vocab_size,
  contextLength: 160,
  bannedIds,
  // Random weights have no favourite ending: a tenth of the vocabulary ends most calls.
  stopIds: Array.from({ length: 26 }, (_, i) => 240 + i),
  weightsMatter: true,
});

describe('LlamaEngine', () => {
  beforeAll(() => engine.load({ id: 'run', version: 1 }, { format: 'gguf', path: files[0] }));

  it.each([
    ['temperature 1', { temperature: 1 }],
    ['temperature 0.7', { temperature: 0.7 }],
    ['temperature 0', { temperature: 0 }],
  ])('reports the log-probabilities of a double-precision reference at %s', async (_, sampling) => {
    const { prompt, tokens, logprobs } = await engine.sample('current', request('reference', sampling));
    const reference = referenceLogprobs(TINY, weights[0], [...prompt, ...tokens], {
      temperature: sampling.temperature || 1,
      banned: bannedIds,
    });
    const errors = [...tokens].map((id, i) =>
      Math.abs(logprobs[i]! - reference[prompt.length - 1 + i]![id]!),
    );
    expect(Math.max(...errors)).toBeLessThan(1e-4);
    if (sampling.temperature === 0) {
      const best = reference.slice(prompt.length - 1, -1).map((row) => row.indexOf(Math.max(...row)));
      expect([...tokens]).toEqual(best);
    }
  });

  it('samples each call from its own distribution, however many run at once', async () => {
    const calls = Array.from({ length: 160 }, (_, i) => ({
      ...request(`busy${i}`, { maxTokens: 12 }),
      prompt: Int32Array.from({ length: 10 + (i % 9) }, (_, t) => 10 + ((i * 37 + t * 11) % 250)),
    }));
    const sampled = await Promise.all(calls.map((call) => engine.sample('current', call)));
    const worst = sampled.map(({ prompt, tokens, logprobs }) => {
      const reference = referenceLogprobs(TINY, weights[0], [...prompt, ...tokens], { banned: bannedIds });
      return Math.max(
        ...[...tokens].map((id, t) => Math.abs(logprobs[t]! - reference[prompt.length - 1 + t]![id]!)),
      );
    });
    expect(Math.max(...worst)).toBeLessThan(0.01);
  });

  it('refuses to start where sequences would mix', async () => {
    const config = JSON.stringify({ kind: 'llama', sequences: 2 });
    const env = { ...process.env, UV_THREADPOOL_SIZE: '4' };
    const child = fork(engineMain, [join(dir, 'mix.sock'), config], { silent: true, execArgv: [], env });
    let stderr = '';
    child.stderr!.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    expect(await exited(child)).toBe(1);
    expect(stderr).toContain('UV_THREADPOOL_SIZE=1');
  });

  it('is what it says it is, by the probe', async () => {
    const said = await engine.describe();
    expect(await probeEngine(engine)).toEqual({ ...said, temperature: true, seed: true });
  });

  it('draws from the distribution it reports', async () => {
    const draws = 1500;
    const counts = new Map<number, number>();
    const probability = new Map<number, number>();
    await Promise.all(
      Array.from({ length: draws }, async (_, i) => {
        const { tokens, logprobs } = await engine.sample('current', request(`draw${i}`, { maxTokens: 1 }));
        counts.set(tokens[0]!, (counts.get(tokens[0]!) ?? 0) + 1);
        probability.set(tokens[0]!, Math.exp(logprobs[0]!));
      }),
    );
    const likely = [...probability].filter(([, p]) => p * draws >= 20);
    expect(likely.length).toBeGreaterThan(5);
    for (const [id, p] of likely) {
      // 4.5 standard deviations: the seeds are fixed, so this passes always or never.
      expect(Math.abs(counts.get(id)! - draws * p)).toBeLessThan(4.5 * Math.sqrt(draws * p * (1 - p)));
    }
  });

  it('renormalises over top-k and top-p', async () => {
    const { prompt } = request('');
    const [row] = referenceLogprobs(TINY, weights[0], [...prompt], { banned: bannedIds }).slice(-1);
    const ranked = [...row!].map((lp, id) => ({ id, p: Math.exp(lp) })).sort((a, b) => b.p - a.p);
    const first = (seed: string, sampling: object) =>
      engine.sample('current', request(seed, { maxTokens: 1, ...sampling }));
    const top3 = ranked.slice(0, 3);
    const mass = top3.reduce((sum, { p }) => sum + p, 0);
    for (let i = 0; i < 20; i++) {
      const { tokens, logprobs } = await first(`k${i}`, { topK: 3 });
      const drawn = top3.find(({ id }) => id === tokens[0]);
      expect(Math.exp(logprobs[0]!)).toBeCloseTo(drawn!.p / mass, 4);
    }
    const one = await first('p', { topP: ranked[0]!.p / 2 });
    expect([one.tokens[0], one.logprobs[0]]).toEqual([ranked[0]!.id, 0]);
  });

  it('gives the same numbers whether the prefix was cached or not', async () => {
    const long = { ...request('cache'), tag: 'cached' };
    await engine.sample('current', long);
    const grown = Int32Array.from([...long.prompt, 20, 30, 40]);
    const again = await engine.sample('current', { ...long, prompt: grown });
    const shorter = await engine.sample('current', { ...long, prompt: long.prompt.slice(0, 7) });
    for (const { prompt, tokens, logprobs } of [again, shorter]) {
      const reference = referenceLogprobs(TINY, weights[0], [...prompt, ...tokens], { banned: bannedIds });
      [...tokens].forEach((id, i) => {
        expect(Math.abs(logprobs[i]! - reference[prompt.length - 1 + i]![id]!)).toBeLessThan(1e-4);
      });
    }
  });

  it('takes a prefix that another rollout has evaluated, and gives the same numbers', async () => {
    const local = new LlamaEngine({ contextLength: 160, sequences: 3 });
    await local.load({ id: 'run', version: 1 }, { format: 'gguf', path: files[0] });
    const head = Array.from({ length: 60 }, (_, t) => 10 + ((t * 17) % 250));
    const ask = (tag: string, tail: number[]) =>
      local.sample('current', { ...request(tag), prompt: Int32Array.from([...head, ...tail]) });
    await ask('first', [20, 21, 22]);
    expect(local.stats()).toEqual({
      calls: 1,
      promptTokens: 63,
      reusedTokens: 0,
      copiedTokens: 0,
      sampledTokens: 30,
    });
    const second = await ask('second', [30, 31]);
    expect(local.stats()).toMatchObject({ promptTokens: 125, reusedTokens: 0, copiedTokens: 60 });
    const whole = [...second.prompt, ...second.tokens];
    const third = await local.sample('current', {
      ...request('third'),
      tag: 'second',
      prompt: Int32Array.from([...whole, 40]),
    });
    // All but the last sampled token, which nothing had been drawn behind.
    expect(local.stats()).toMatchObject({ reusedTokens: whole.length - 1, copiedTokens: 60 });
    for (const { prompt, tokens, logprobs } of [second, third]) {
      const reference = referenceLogprobs(TINY, weights[0], [...prompt, ...tokens], { banned: bannedIds });
      [...tokens].forEach((id, i) => {
        expect(Math.abs(logprobs[i]! - reference[prompt.length - 1 + i]![id]!)).toBeLessThan(1e-4);
      });
    }
    await local.close();
  });

  it('copies prefixes out of sequences that are decoding, without disturbing them', async () => {
    const head = Array.from({ length: 50 }, (_, t) => 10 + ((t * 13) % 250));
    const calls = Array.from({ length: 40 }, (_, i) => ({
      ...request(`shared${i}`, { maxTokens: 12 }),
      prompt: Int32Array.from([
        ...head,
        ...Array.from({ length: 5 + (i % 7) }, (_, t) => 10 + ((i * 37 + t) % 250)),
      ]),
    }));
    for (const { prompt, tokens, logprobs } of await Promise.all(
      calls.map((call) => engine.sample('current', call)),
    )) {
      const reference = referenceLogprobs(TINY, weights[0], [...prompt, ...tokens], { banned: bannedIds });
      [...tokens].forEach((id, i) => {
        expect(Math.abs(logprobs[i]! - reference[prompt.length - 1 + i]![id]!)).toBeLessThan(1e-3);
      });
    }
  });

  it('does not need the weights file after load, and says what is wrong with one', async () => {
    const gone = join(dir, 'gone.gguf');
    copyFileSync(files[0], gone);
    await engine.load({ id: 'run', version: 7 }, { format: 'gguf', path: gone });
    rmSync(gone);
    expect((await engine.sample('current', request('gone'))).tokens).toHaveLength(30);
    const policy = { id: 'run', version: 8 };
    await expect(engine.load(policy, { format: 'gguf', path: gone })).rejects.toMatchObject({
      code: 'FILE_E_MISSING',
    });
    writeFileSync(gone, 'not a model');
    await expect(engine.load(policy, { format: 'gguf', path: gone })).rejects.toMatchObject({
      code: 'ENGINE_E_WEIGHTS',
      message: expect.stringContaining('gone.gguf'),
    });
    expect((await engine.describe()).policy?.version).toBe(7);
  });

  it('starts without a policy, and after kill -9 comes back with the weights it had', async () => {
    const config: EngineConfig = { kind: 'llama', contextLength: 160, state: join(dir, 'state.json') };
    const one = start('restart', config);
    await expect(one.engine.sample('current', request('x'))).rejects.toMatchObject({
      code: 'ENGINE_E_NO_POLICY',
    });
    await one.engine.load({ id: 'run', version: 3 }, { format: 'gguf', path: files[1] });
    const before = await one.engine.sample('current', request('x'));
    const gone = exited(one.child);
    one.child.kill('SIGKILL');
    await gone;
    const waiting = one.engine.sample('current', request('x'));
    const two = start('restart', config);
    const after = await waiting;
    expect(after.policy).toEqual({ id: 'run', version: 3 });
    expect(after.tokens).toEqual(before.tokens);
    const ended = exited(two.child);
    two.child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  it('ends when its parent lets go, even in the middle of calls', async () => {
    const { engine: busy, child } = start('orphan', { kind: 'llama', contextLength: 160 });
    await busy.load({ id: 'run', version: 1 }, { format: 'gguf', path: files[0] });
    const calls = Array.from({ length: 8 }, (_, i) =>
      busy.sample('current', request(`o${i}`, { maxTokens: 100 })),
    );
    const settled = Promise.allSettled(calls);
    const ended = exited(child);
    child.disconnect();
    expect(await ended).toBe(0);
    await busy.close();
    for (const result of await settled) {
      if (result.status === 'fulfilled') expect(['abort', 'length']).toContain(result.value.finish);
      else expect(result.reason).toBeInstanceOf(Error);
    }
    expect(existsSync(join(dir, 'orphan.sock'))).toBe(false);
  });

  it('refuses a configuration it does not know', async () => {
    const child = fork(engineMain, [join(dir, 'no.sock'), '{"kind":"gpt"}'], { silent: true, execArgv: [] });
    const stderr = new Promise<string>((resolve) => {
      let text = '';
      child.stderr!.on('data', (chunk: Buffer) => (text += chunk.toString()));
      child.stderr!.on('end', () => resolve(text));
    });
    expect(await exited(child)).toBe(1);
    expect(await stderr).toMatch(/ENGINE_E_CONFIG.*"gpt".*expected one of llama, scripted/);
  });
});
