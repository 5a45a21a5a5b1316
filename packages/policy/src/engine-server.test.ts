import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RpcServer } from '@treeward/base';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { remoteEngine, serveEngine } from './engine-server.js';
import type { Engine, Sampled, SampleRequest } from './types.js';

const request: SampleRequest = {
  prompt: Int32Array.of(1, 2, 3),
  stopIds: [9],
  tag: 'r1',
  sampling: { temperature: 1, topP: 1, topK: 0, bannedIds: [0], maxTokens: 4, seed: 's' },
};
const policy = { id: 'p', version: 3 };
const sampled: Omit<Sampled, 'finish'> = {
  prompt: request.prompt,
  tokens: Int32Array.of(7, 9),
  logprobs: Float32Array.of(-0.1, NaN),
  sampling: request.sampling,
  policy,
};

/** Answers at once, except for maxTokens 1: then only when aborted. */
const slow: Engine = {
  describe: async () => ({
    name: 'slow',
    ids: true,
    logprobs: 'none',
    contextLength: 8,
    vocabSize: 10,
    policy,
  }),
  load: async () => undefined,
  sample: async (_policy, { sampling }, { signal } = {}) => {
    if (sampling.maxTokens === 1 && !signal!.aborted) {
      await new Promise((resolve) => signal!.addEventListener('abort', resolve));
    }
    return { ...sampled, finish: signal!.aborted ? 'abort' : 'stop' };
  },
  close: async () => undefined,
};

let dir: string;
let server: RpcServer;
let remote: Engine;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'policy-server-'));
  server = await serveEngine(join(dir, 'e.sock'), slow);
  remote = remoteEngine(join(dir, 'e.sock'));
});
afterEach(async () => {
  await remote.close();
  await server.close();
  rmSync(dir, { recursive: true });
});

describe('an engine behind a socket', () => {
  it('gives back exactly what the engine gave, NaN log-probabilities included', async () => {
    expect(await remote.sample('current', request)).toEqual({ ...sampled, finish: 'stop' });
    expect(await remote.describe()).toEqual(await slow.describe());
  });

  it('brings an abort to the engine and the tokens so far back, whenever it comes', async () => {
    const endless = { ...request, sampling: { ...request.sampling, maxTokens: 1 } };
    const at = async (delay: number): Promise<Sampled> => {
      const abort = new AbortController();
      const call = remote.sample('current', endless, { signal: abort.signal });
      if (delay === 0) abort.abort();
      else setTimeout(() => abort.abort(), delay);
      return call;
    };
    const results = await Promise.all([
      remote.sample('current', endless, { signal: AbortSignal.abort() }),
      at(0),
      at(1),
      at(30),
    ]);
    for (const result of results) expect(result).toEqual({ ...sampled, finish: 'abort' });
  });

  it('carries chats to an engine of text, and says of one of ids that it has none', async () => {
    const ask = { messages: [{ role: 'user' as const, text: 'hi' }], tools: [], sampling: {}, tag: 't' };
    await expect(remote.chat!(ask)).rejects.toMatchObject({ code: 'ENGINE_E_IDS_ONLY' });
    const usage = { promptTokens: 1, completionTokens: 2 };
    const hosted: Engine = {
      ...slow,
      chat: async ({ messages }, options) => {
        if (messages.length === 0) {
          await new Promise((resolve) => options!.signal!.addEventListener('abort', resolve));
        }
        return { parts: [{ type: 'text', text: 'yes' }], finish: 'stop', usage, model: 'm' };
      },
    };
    const other = await serveEngine(join(dir, 'chat.sock'), hosted);
    const chatting = remoteEngine(join(dir, 'chat.sock'));
    expect(await chatting.chat!(ask)).toEqual(await hosted.chat!(ask));
    const waiting = chatting.chat!({ ...ask, messages: [] }, { signal: AbortSignal.timeout(20) });
    await expect(waiting).rejects.toThrow(/abort/);
    await chatting.close();
    await other.close();
  });

  it('stops waiting for an engine that is gone when aborted', async () => {
    const nobody = remoteEngine(join(dir, 'nobody.sock'), { retryFor: 60_000 });
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 20);
    const started = Date.now();
    await expect(nobody.sample('current', request, { signal: abort.signal })).rejects.toThrow(/abort/);
    expect(Date.now() - started).toBeLessThan(10_000);
  });
});
