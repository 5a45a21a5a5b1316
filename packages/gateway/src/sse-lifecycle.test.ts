import { setTimeout as sleep } from 'node:timers/promises';
import {
  canonicalKey,
  dialects,
  encodeServerEvent,
  type Dialect,
  type Reply,
  type ReplyForm,
  type ReplyMeta,
  type ReplyPart,
} from '@treeward/messages';
import type { CallEnd } from '@treeward/telemetry';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { testGateway, type TestGateway } from './testing/harness.js';
import { readLifecycle } from './testing/sse-lifecycles.js';
import { sseServer, type SseServer } from './testing/sse-server.js';
import { speakingTemplate, text } from './testing/sse-speaker.js';

let server: SseServer;
beforeAll(async () => {
  server = await sseServer();
});
afterAll(() => server.close());

const all = Object.values(dialects).map((dialect) => [dialect.name, dialect] as const);

const meta: ReplyMeta = { id: 'id-1', model: 'policy', promptTokens: 7 };
const quick = { openAfterMs: 0, keepAliveMs: 1 };
const never = { openAfterMs: 1e6, keepAliveMs: 1e6 };

/** Many of these are longer than one delta, some than what goes out at once. */
const words = fc
  .tuple(fc.string({ unit: 'grapheme', maxLength: 30 }), fc.constantFrom(1, 1, 40, 400))
  .map(([piece, times]) => piece.repeat(times));
const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });
const callPart = fc
  .record({ id: fc.uuid(), name, args: fc.dictionary(name, fc.oneof(fc.jsonValue({ maxDepth: 2 }), words)) })
  .map(({ id, name: called, args }): ReplyPart => ({ type: 'tool_call', id, name: called, arguments: args }));
/** `patch` is a custom tool where a dialect has such. */
const patchPart = fc
  .record({ id: fc.uuid(), input: words })
  .map(({ id, input }): ReplyPart => ({ type: 'tool_call', id, name: 'patch', arguments: { input } }));
const anyReply: fc.Arbitrary<Reply> = fc
  .record({
    parts: fc.array(fc.oneof(words.map(text), callPart, patchPart), { minLength: 1, maxLength: 5 }),
    cut: fc.boolean(),
    streamUsage: fc.boolean(),
    promptTokens: fc.integer({ min: 1, max: 9999 }),
    completionTokens: fc.nat(999),
  })
  .map(({ parts, cut, streamUsage, promptTokens, completionTokens }) => {
    const form: ReplyForm = { streamUsage, calls: new Map([['patch', { type: 'custom' }]]) };
    const called = parts.some(({ type }) => type === 'tool_call');
    const stop = cut ? 'length' : called ? 'tool_calls' : 'stop';
    return { id: 'id-1', model: 'policy', parts, stop, form, usage: { promptTokens, completionTokens } };
  });

const metaOf = ({ id, model, usage, form }: Reply): ReplyMeta & { stream: boolean } => ({
  id,
  model,
  promptTokens: usage.promptTokens,
  form: form!,
  stream: true,
});

const keyOf = (parts: ReplyPart[]): string => canonicalKey({ role: 'assistant', parts });
const callIds = (parts: readonly ReplyPart[]): string[] =>
  parts.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []));
const textsOf = (parts: readonly ReplyPart[]): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
const endsOfEvents = (bytes: Buffer): number => bytes.toString('latin1').split('\n\n').length - 1;

/** Resolves once the client has had the opening and so many signs of life. */
function beatsHeard(
  dialect: Dialect,
  beats: number,
): { heard: Promise<void>; onData: (bytes: Buffer) => void } {
  let done = (): void => undefined;
  const heard = new Promise<void>((resolve) => (done = resolve));
  const wanted = dialect.opening(meta).length + beats;
  return { heard, onData: (bytes) => endsOfEvents(bytes) >= wanted && done() };
}

describe.each(all)('a stream of %s', (_, dialect) => {
  it('is one legal life cycle that holds the whole reply, whatever it is and however long it was waited for', async () => {
    await fc.assert(
      fc.asyncProperty(anyReply, fc.nat(2), async (reply, beats) => {
        const { heard: waited, onData } = beatsHeard(dialect, beats);
        const { outcome, heard } = await server.exchange(
          dialect,
          async (exchange) => {
            exchange.hold(metaOf(reply), quick);
            if (beats > 0) await waited;
            return exchange.reply(reply);
          },
          onData,
        );
        const told = readLifecycle(dialect.name, heard.bytes, { usage: reply.form!.streamUsage! });
        expect(heard).toMatchObject({ status: 200, cut: false });
        expect(told.beats).toBeGreaterThanOrEqual(beats);
        expect(told.error).toBeNull();
        expect(told.stop).toBe(reply.stop);
        expect(textsOf(told.parts)).toBe(textsOf(reply.parts));
        expect(callIds(told.parts)).toEqual(callIds(reply.parts));
        expect(keyOf(told.parts)).toBe(keyOf(reply.parts));
        const silent = dialect.name === 'openai-chat' && !reply.form!.streamUsage;
        expect(told.usage).toEqual(silent ? null : reply.usage);
        expect(outcome).toMatchObject({ delivery: 'complete', cause: 'done', status: 200 });
        expect(outcome.sent!.bytes).toBe(heard.bytes.length);
        const before = dialect.opening(meta).length + told.beats;
        expect(outcome.sent!.events).toBe(endsOfEvents(heard.bytes) - before);
      }),
      { numRuns: 60 },
    );
  });

  it('ends with an error in its own shape when the reply fails after the opening', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(429, 500, dialect.overloadedStatus),
        fc.string({ unit: 'grapheme' }),
        fc.nat(2),
        async (status, message, beats) => {
          const { heard: waited, onData } = beatsHeard(dialect, beats);
          const { outcome, heard } = await server.exchange(
            dialect,
            async (exchange) => {
              exchange.hold(meta, quick);
              await waited;
              return exchange.fail(status, message, { cause: 'engine' });
            },
            onData,
          );
          const told = readLifecycle(dialect.name, heard.bytes, { usage: true });
          expect(told).toMatchObject({ parts: [], stop: null, usage: null, error: { message } });
          expect(told.beats).toBeGreaterThanOrEqual(beats);
          expect(outcome).toMatchObject({ delivery: 'none', cause: 'engine', status, firstByte: null });
          expect(outcome.sent).toEqual({ bytes: heard.bytes.length, events: 0 });
        },
      ),
      { numRuns: 20 },
    );
  });

  it('is not opened for an error that comes before: it has its own status', async () => {
    const { outcome, heard } = await server.exchange(dialect, (exchange) => {
      exchange.hold(meta, never);
      return exchange.fail(dialect.overloadedStatus, 'away', { cause: 'engine', retry: false });
    });
    expect(heard.status).toBe(dialect.overloadedStatus);
    expect(JSON.parse(heard.bytes.toString())).toEqual(dialect.error(dialect.overloadedStatus, 'away'));
    expect(outcome.sent).toEqual({ bytes: heard.bytes.length, events: 0 });
  });

  it('says that a prompt is over the window where its clients look for it', async () => {
    const body = dialect.contextExceeded(600, 512);
    const { outcome, heard } = await server.exchange(dialect, (exchange) => {
      exchange.hold(meta, never);
      return exchange.fail(400, 'too long', { cause: 'done', body });
    });
    if (dialect.name === 'openai-responses') {
      const { error } = readLifecycle(dialect.name, heard.bytes, { usage: true });
      expect(error).toMatchObject({ code: 'context_length_exceeded' });
      expect(error!.message).toContain('exceeds the context window');
      expect(heard.status).toBe(200);
    } else {
      expect(JSON.parse(heard.bytes.toString())).toEqual(body);
      expect(heard.status).toBe(400);
    }
    expect(outcome.status).toBe(400);
  });
});

describe.each(all)('what a client of %s had when it ended', (_, dialect) => {
  afterEach(() => vi.useRealTimers());

  const long: Reply = {
    ...{ id: 'id-1', model: 'policy', stop: 'stop', usage: { promptTokens: 7, completionTokens: 9 } },
    parts: [text('ä'.repeat(2_000_000))],
  };
  const short: Reply = { ...long, parts: [text('hi')] };
  const opening = (): string => dialect.opening(meta).map(encodeServerEvent).join('');

  /** All bytes of the stream; time stands still, so that they are known. */
  function wire(reply: Reply): Buffer {
    return Buffer.from(opening() + dialect.events(reply).map(encodeServerEvent).join(''));
  }

  it.each(['client', 'gateway'] as const)(
    'in the middle of its reply, ended by the %s, is known',
    async (by) => {
      vi.useFakeTimers({ toFake: ['Date'] });
      let ours: () => void = () => undefined;
      const { outcome, heard } = await server.exchange(
        dialect,
        (exchange) => {
          exchange.hold(meta, never);
          ours = () => exchange.cut();
          return exchange.reply(long);
        },
        (bytes, response) => {
          if (bytes.length < 100_000) return;
          if (by === 'client') response.destroy();
          else ours();
        },
      );
      expect(heard.cut).toBe(true);
      expect(outcome).toMatchObject({ delivery: 'partial', cause: by, status: 200 });
      expect(outcome.firstByte).not.toBeNull();
      const { bytes, events } = outcome.sent!;
      const whole = wire(long);
      expect(bytes).toBeLessThan(whole.length);
      // One piece may have been taken without having been confirmed.
      expect(bytes).toBeGreaterThan(100_000 - 20_000);
      expect(events).toBe(endsOfEvents(whole.subarray(0, bytes)) - dialect.opening(meta).length);
      expect(whole.subarray(0, heard.bytes.length).equals(heard.bytes)).toBe(true);
    },
  );

  it.each(['client', 'gateway'] as const)(
    'after the opening, ended by the %s, is nothing of the reply',
    async (by) => {
      vi.useFakeTimers({ toFake: ['Date'] });
      let opened = (): void => undefined;
      const { outcome } = await server.exchange(
        dialect,
        async (exchange) => {
          exchange.hold(meta, { openAfterMs: 0, keepAliveMs: 1e6 });
          await new Promise<void>((resolve) => (opened = resolve));
          if (by === 'gateway') exchange.cut();
          else while (!exchange.clientGone) await sleep(2);
          return exchange.reply(short);
        },
        (_bytes, response) => {
          opened();
          if (by === 'client') response.destroy();
        },
      );
      expect(outcome).toEqual({
        firstByte: null,
        delivery: 'none',
        cause: by,
        status: 200,
        sent: { bytes: Buffer.byteLength(opening()), events: 0 },
      });
    },
  );

  it('before the opening, ended by us, is nothing', async () => {
    const { outcome, heard } = await server.exchange(dialect, async (exchange) => {
      exchange.hold(meta, never);
      exchange.cut();
      return exchange.reply(short);
    });
    expect(heard).toMatchObject({ status: 0, cut: true });
    expect(outcome).toEqual({
      firstByte: null,
      delivery: 'none',
      cause: 'gateway',
      status: 499,
      sent: { bytes: 0, events: 0 },
    });
  });

  it('of a reply that is lost on purpose is its first half', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { outcome, heard } = await server.exchange(dialect, (exchange) => {
      exchange.hold(meta, never);
      return exchange.reply(short, 'drop-mid');
    });
    expect(heard.cut).toBe(true);
    expect(outcome).toMatchObject({ delivery: 'partial', cause: 'gateway', status: 200 });
    expect(outcome.sent!.bytes).toBe(heard.bytes.length);
    expect(outcome.sent!.events).toBe(endsOfEvents(heard.bytes) - dialect.opening(meta).length);
    expect(heard.bytes.length).toBeLessThan(wire(short).length);
  });

  it('of a plain answer is bytes', async () => {
    const { outcome, heard } = await server.exchange(dialect, (exchange) => {
      return exchange.reply(short);
    });
    expect(heard).toMatchObject({ status: 200, cut: false });
    expect(outcome).toMatchObject({ delivery: 'complete', cause: 'done' });
    expect(outcome.sent).toEqual({ bytes: heard.bytes.length, events: 0 });
  });
});

describe.each(all)('in the record of a rollout that speaks %s', (dialectName, dialect) => {
  let test: TestGateway;
  afterEach(() => test.dispose());

  const body = {
    'anthropic-messages': { messages: [{ role: 'user', content: 'hi' }] },
    'openai-chat': { messages: [{ role: 'user', content: 'hi' }] },
    'openai-responses': { input: 'hi' },
  }[dialectName];
  const request = { path: dialect.path, body: { ...body, model: 'any', stream: true } };

  /** A policy that says more than a connection holds. */
  const talking = { ...speakingTemplate, parse: () => ({ parts: [text('y'.repeat(2_000_000))] }) };

  it('stands what was sent, and that it was us who closed in the middle or the client who left', async () => {
    test = testGateway({ template: talking, openAfterMs: 0, keepAliveMs: 5 });
    test.engine.gate = Promise.resolve(); // the engine is listening when the rollout is closed
    const rollout = await test.open('one');
    const whole = await rollout.ask(request);
    const left = await rollout.ask({
      ...request,
      onRequest: (sent) => sent.on('response', (response) => response.once('data', () => response.destroy())),
    });
    let closing: Promise<unknown> | null = null;
    const cut = await rollout.ask({
      ...request,
      onData: (so) => {
        if (so.length > 50_000) closing ??= test.gateway.close('one');
      },
    });
    await closing;
    expect([whole.cut, left.cut, cut.cut]).toEqual([false, true, true]);
    const ends = rollout.events().filter((event): event is CallEnd => event.type === 'call.end');
    expect(ends.map(({ call, cause, delivery }) => [call, cause, delivery])).toEqual([
      [0, 'done', 'complete'],
      [1, 'client', expect.stringMatching(/none|partial/)],
      [2, 'gateway', 'partial'],
    ]);
    const [complete, gone, closed] = ends.map(({ sent }) => sent!);
    expect(complete!.bytes).toBe(Buffer.byteLength(whole.text));
    expect(gone!.bytes).toBeLessThan(complete!.bytes);
    expect(closed!.bytes).toBeLessThan(complete!.bytes);
    expect(closed!.events).toBeGreaterThan(0);
    expect(closed!.events).toBeLessThan(complete!.events);
  });

  it('stands who ended a stream that was still waited for', async () => {
    test = testGateway({ template: speakingTemplate, openAfterMs: 0, keepAliveMs: 5, closeGraceMs: 50 });
    const rollout = await test.open('one');
    test.engine.gate = new Promise(() => undefined);
    const left = await rollout.ask({
      ...request,
      onRequest: (sent) => sent.on('response', (response) => response.once('data', () => response.destroy())),
    });
    let closing: Promise<unknown> | null = null;
    const cut = await rollout.ask({ ...request, onData: () => (closing ??= test.gateway.close('one')) });
    await closing;
    expect([left.cut, cut.cut]).toEqual([true, true]);
    const ends = rollout.events().filter((event): event is CallEnd => event.type === 'call.end');
    const facts = ends.map(({ call, cause, delivery, firstByte }) => [call, cause, delivery, firstByte]);
    expect(facts.sort()).toEqual([
      [0, 'client', 'none', null],
      [1, 'gateway', 'none', null],
    ]);
    for (const { sent } of ends) {
      expect(sent!.bytes).toBeGreaterThan(0);
      expect(sent!.events).toBe(0);
    }
  });
});
