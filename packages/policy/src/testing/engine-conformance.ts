import { describe, expect, it } from 'vitest';
import { toPlainError, TreewardError } from '@treeward/base';
import type { ReplyPart } from '@treeward/messages';
import type { ChatReply, ChatRequest, Engine, Policy, Sampled, SampleRequest, WeightsRef } from '../types.js';

/** What the suite needs to know about the engine under test. */
export interface EngineUnderTest {
  engine: () => Engine;
  /** Two different sets of weights (or none, where weights mean nothing). Loaded by the suite. */
  weights: () => [WeightsRef, WeightsRef];
  vocabSize: number;
  contextLength: number;
  bannedIds: readonly number[];
  /** At least one of these must come up often enough to end some calls. */
  stopIds: readonly number[];
  /** Do the two sets of weights sample differently? Not where prepared replies are played. */
  weightsMatter: boolean;
}

const FIRST: Policy = { id: 'run', version: 1 };
const SECOND: Policy = { id: 'run', version: 2 };

/** What every `Engine` has to do. Calls run against real weights and, where that is how it is used, a real process. */
export function engineConformance(name: string, test: EngineUnderTest): void {
  const prompt = (length: number, salt = 0): Int32Array =>
    Int32Array.from({ length }, (_, i) => 10 + ((i * 7 + salt * 13) % (test.vocabSize - 10)));
  const request = (
    tag: string,
    overrides: Partial<SampleRequest['sampling']> = {},
    length = 20,
  ): SampleRequest => ({
    prompt: prompt(length),
    stopIds: test.stopIds,
    tag,
    sampling: {
      temperature: 1,
      topP: 1,
      topK: 0,
      bannedIds: test.bannedIds,
      maxTokens: 12,
      seed: tag,
      ...overrides,
    },
  });
  const many = (prefix: string, count: number): Promise<Sampled[]> =>
    Promise.all(
      Array.from({ length: count }, (_, i) =>
        test.engine().sample('current', { ...request(`${prefix}${i}`), prompt: prompt(5 + (i % 30), i) }),
      ),
    );
  const codeOf = (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => 'no error',
      (error: unknown) => (TreewardError.isInstance(error) ? error.code : String(error)),
    );

  describe(`${name}: Engine`, () => {
    it('says what it is once weights are loaded', async () => {
      await test.engine().load(FIRST, test.weights()[0]);
      expect(await test.engine().describe()).toEqual({
        name: expect.any(String),
        ids: true,
        logprobs: 'processed',
        contextLength: test.contextLength,
        vocabSize: test.vocabSize,
        policy: FIRST,
      });
    });

    it('returns ids in range, never banned, one log-probability each, and the request as it was', async () => {
      for (const [i, sampled] of (await many('shape', 24)).entries()) {
        expect(sampled.tokens.length).toBeGreaterThan(0);
        expect(sampled.tokens.length).toBeLessThanOrEqual(12);
        expect(sampled.logprobs).toHaveLength(sampled.tokens.length);
        expect([...sampled.tokens].every((id) => id >= 0 && id < test.vocabSize)).toBe(true);
        expect([...sampled.tokens].filter((id) => test.bannedIds.includes(id))).toEqual([]);
        expect([...sampled.logprobs].every((lp) => Number.isFinite(lp) && lp <= 0)).toBe(true);
        expect(sampled.prompt).toEqual(prompt(5 + (i % 30), i));
        expect(sampled.sampling).toEqual(request(`shape${i}`).sampling);
        expect(sampled.policy).toEqual(FIRST);
      }
    });

    it('ends at the first stop id, and only there', async () => {
      const sampled = await many('stop', 24);
      const stopped = sampled.filter(({ finish }) => finish === 'stop');
      expect(stopped.length).toBeGreaterThan(0);
      for (const { tokens, finish } of sampled) {
        const at = tokens.findIndex((id) => test.stopIds.includes(id));
        expect(at).toBe(finish === 'stop' ? tokens.length - 1 : -1);
      }
    });

    it('finishes as length at maxTokens', async () => {
      const sampled = await test
        .engine()
        .sample('current', { ...request('cut', { maxTokens: 1 }), stopIds: [] });
      expect(sampled).toMatchObject({ finish: 'length' });
      expect(sampled.tokens).toHaveLength(1);
    });

    it('finishes as length at the end of the context, and refuses a prompt that fills it', async () => {
      const near = { ...request('near', { maxTokens: 50 }, test.contextLength - 2), stopIds: [] };
      const sampled = await test.engine().sample('current', near);
      expect(sampled.finish).toBe('length');
      expect(sampled.tokens.length).toBeLessThanOrEqual(2);
      const full = test.engine().sample('current', request('full', {}, test.contextLength));
      await expect(full).rejects.toMatchObject({
        code: 'ENGINE_E_CONTEXT',
        message: expect.stringContaining(String(test.contextLength)),
        data: { promptTokens: test.contextLength, contextLength: test.contextLength },
      });
    });

    it('gives the same tokens for the same seed, alone or among others', async () => {
      const seeds = Array.from({ length: 6 }, (_, i) => `seed${i}`);
      const call = (seed: string, round: string): Promise<Sampled> =>
        test.engine().sample('current', request(round + seed, { seed }));
      const alone: Sampled[] = [];
      for (const seed of seeds) alone.push(await call(seed, 'a'));
      const together = await Promise.all(seeds.map((seed) => call(seed, 'b')));
      expect(together.map(({ tokens }) => [...tokens])).toEqual(alone.map(({ tokens }) => [...tokens]));
      expect(new Set(alone.map(({ tokens }) => tokens.join())).size).toBeGreaterThan(1);
    });

    it('ends an aborted call as abort, before or during it, and works on afterwards', async () => {
      const before = await test.engine().sample('current', request('ab0'), { signal: AbortSignal.abort() });
      expect(before.finish).toBe('abort');
      expect(before.tokens).toHaveLength(0);
      const controllers = Array.from({ length: 20 }, () => new AbortController());
      const calls = controllers.map(({ signal }, i) =>
        test
          .engine()
          .sample('current', { ...request(`ab${i + 1}`, { maxTokens: 100 }), stopIds: [] }, { signal }),
      );
      setTimeout(() => controllers.forEach((controller) => controller.abort()), 5);
      for (const { finish, tokens, logprobs } of await Promise.all(calls)) {
        expect(['abort', 'length']).toContain(finish);
        expect(logprobs).toHaveLength(tokens.length);
      }
      expect((await test.engine().sample('current', request('after'))).tokens.length).toBeGreaterThan(0);
    });

    it('refuses what cannot be sampled, each with its own code', async () => {
      const sample = (overrides: Partial<SampleRequest>, sampling = {}): Promise<string> =>
        codeOf(test.engine().sample('current', { ...request('bad', sampling), ...overrides }));
      expect(await sample({ prompt: new Int32Array(0) })).toBe('ENGINE_E_REQUEST');
      expect(await sample({ prompt: Int32Array.of(test.vocabSize) })).toBe('ENGINE_E_REQUEST');
      expect(await sample({ prompt: Int32Array.of(-1) })).toBe('ENGINE_E_REQUEST');
      expect(await sample({}, { maxTokens: 0 })).toBe('ENGINE_E_REQUEST');
      expect(await sample({}, { temperature: -1 })).toBe('ENGINE_E_REQUEST');
      expect(await sample({}, { topP: 0 })).toBe('ENGINE_E_REQUEST');
      expect(await codeOf(test.engine().sample(SECOND, request('bad')))).toBe('ENGINE_E_STALE');
    });

    it('swaps weights between calls: each call has one version, calls after load have the new one', async () => {
      const { engine, weights } = test;
      const running = many('swap', 24);
      const loading = engine().load(SECOND, weights()[1]);
      const during = many('swap-during', 8);
      await loading;
      const after = await many('swap', 24);
      const old = (await running).filter(({ policy }) => policy.version === FIRST.version);
      expect(old.length).toBeGreaterThan(0);
      expect(after.map(({ policy }) => policy)).toEqual(after.map(() => SECOND));
      expect((await engine().describe()).policy).toEqual(SECOND);
      expect(await codeOf(engine().sample(FIRST, request('swap')))).toBe('ENGINE_E_STALE');
      if (!test.weightsMatter) return;
      // No mixing: whatever was under way equals what its version gives when nothing else happens.
      const settledSecond = await many('swap-during', 8);
      await engine().load(FIRST, weights()[0]);
      const settledFirst = await many('swap-during', 8);
      for (const [i, { policy, tokens }] of (await during).entries()) {
        const expected = (policy.version === FIRST.version ? settledFirst : settledSecond)[i]!;
        expect([...tokens]).toEqual([...expected.tokens]);
      }
      expect(settledFirst.map(({ tokens }) => tokens.join())).not.toEqual(
        settledSecond.map(({ tokens }) => tokens.join()),
      );
    });
  });
}

/** What the suite needs of a server that speaks the protocol of a text-only engine. */
export interface ChatEngineUnderTest {
  engine: () => Engine;
  /** Sets what the server answers next: a reply in its protocol, or a fault. */
  reply: (parts: readonly ReplyPart[], finish: 'stop' | 'length') => void;
  fault: (fault: number | 'hang' | 'drop', message?: string, thenReply?: boolean) => void;
  /** Calls that reached the server since the last `reply` or `fault`. */
  calls: () => number;
  /** The key that the engine was given, which no error may show. */
  secret: string;
}

/** The part of the contract that engines without ids have. */
export function chatConformance(name: string, test: ChatEngineUnderTest): void {
  const call: ReplyPart = { type: 'tool_call', id: 'call_1', name: 'Read', arguments: { path: 'a', n: [1] } };
  const request: ChatRequest = {
    messages: [
      { role: 'system', text: 'Be brief.' },
      { role: 'user', text: 'Read a.' },
      { role: 'assistant', parts: [{ type: 'text', text: 'Yes.' }, call] },
      { role: 'tool', callId: 'call_1', text: 'contents' },
    ],
    tools: [{ name: 'Read', description: 'Reads.', parameters: { type: 'object', properties: {} } }],
    sampling: { temperature: 0.5, maxTokens: 64 },
    tag: 'r1',
  };
  const chat = (signal?: AbortSignal): Promise<ChatReply> =>
    test.engine().chat!(request, signal ? { signal } : {});

  describe(`${name}: Engine without ids`, () => {
    it('says that it has neither ids nor log-probabilities, and refuses to sample', async () => {
      const facts = await test.engine().describe();
      expect(facts).toMatchObject({ ids: false, logprobs: 'none' });
      const sampling = { temperature: 1, topP: 1, topK: 0, bannedIds: [], maxTokens: 1, seed: 's' };
      const ids = { prompt: Int32Array.of(1), stopIds: [], tag: 't', sampling };
      await expect(test.engine().sample('current', ids)).rejects.toMatchObject({
        code: 'ENGINE_E_TEXT_ONLY',
      });
    });

    it('gives text and calls back as parts, with usage, finish and the model that answered', async () => {
      test.reply([{ type: 'text', text: 'Two.' }, call, { ...call, id: 'call_2', arguments: {} }], 'stop');
      expect(await chat()).toEqual({
        parts: [{ type: 'text', text: 'Two.' }, call, { ...call, id: 'call_2', arguments: {} }],
        finish: 'stop',
        usage: { promptTokens: 11, completionTokens: 7 },
        model: 'model-that-answered',
      });
      test.reply([{ type: 'text', text: 'cut' }], 'length');
      expect((await chat()).finish).toBe('length');
      test.reply([], 'stop');
      expect((await chat()).parts).toEqual([{ type: 'text', text: '' }]);
    });

    it.each([429, 500, 503, 'drop' as const])('tries again after %s', async (fault) => {
      test.fault(fault, 'busy', true);
      expect((await chat()).parts).toEqual([{ type: 'text', text: 'ok' }]);
      expect(test.calls()).toBe(2);
    });

    it.each([
      [401, 'bad key', 'ENGINE_E_AUTH', 1],
      [400, 'tools: wrong', 'ENGINE_E_REQUEST', 1],
      [400, 'maximum context length is 10 tokens', 'ENGINE_E_CONTEXT', 1],
      [404, 'no such model', 'ENGINE_E_REQUEST', 1],
      [503, 'down', 'ENGINE_E_UPSTREAM', 3],
      ['drop' as const, '', 'ENGINE_E_UNREACHABLE', 3],
      ['hang' as const, '', 'ENGINE_E_TIMEOUT', 3],
    ])('fails after %s (%s) as %s', async (fault, message, code, calls) => {
      test.fault(fault, `${message} ${test.secret}`);
      const error = await chat().catch((reason: unknown) => reason as TreewardError);
      expect(error).toMatchObject({ code });
      expect(JSON.stringify([(error as Error).message, toPlainError(error)])).not.toContain(test.secret);
      expect(test.calls()).toBe(calls);
    });

    it('ends at once when aborted', async () => {
      test.fault('hang');
      const abort = new AbortController();
      setTimeout(() => abort.abort(), 20);
      await expect(chat(abort.signal)).rejects.toMatchObject({ code: 'ENGINE_E_ABORTED' });
      await expect(chat(AbortSignal.abort())).rejects.toMatchObject({ code: 'ENGINE_E_ABORTED' });
      expect(test.calls()).toBe(1);
    });
  });
}
