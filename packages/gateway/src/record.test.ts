import type { Message } from '@treeward/messages';
import type { CallPrompt, CallStart, Json, MessagesDelta, RecordEvent } from '@treeward/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import { messagesBody, resultFor, testGateway, turnOf, type TestGateway } from './testing/harness.js';

let test: TestGateway;
afterEach(() => test.dispose());

const user = (content: unknown) => ({ role: 'user', content });

function startsOf(events: readonly RecordEvent[]): CallStart[] {
  return events.filter((event): event is CallStart => event.type === 'call.start');
}

const promptsOf = (events: readonly RecordEvent[]): CallPrompt[] =>
  events.filter((event): event is CallPrompt => event.type === 'call.prompt');

/** Whole message lists by call; a raw delta that is absent stands for the canonical list. */
function whole(starts: readonly CallStart[], replies: ReadonlyMap<number, Json>, raw: boolean): Json[][] {
  const lists: Json[][] = [];
  const put = ({ parent, kept, appended }: MessagesDelta): Json[] => {
    const before = parent === null ? [] : [...lists[parent]!, replies.get(parent) ?? null];
    return [...before.slice(0, kept), ...appended];
  };
  for (const start of starts) {
    lists.push(raw && start.raw ? put(start.raw) : put(start.messages));
  }
  return lists;
}

/** Takes a wrapping off user messages, as adapters do. */
const unwrap = (messages: readonly Message[]): Message[] =>
  messages.map((message) =>
    message.role === 'user' ? { ...message, text: message.text.replace(/<now>.*<\/now>/, '') } : message,
  );

describe('the record of a call', () => {
  it('says who asks, as the adapter reads it from headers without secrets and messages as they came', async () => {
    const seen: unknown[] = [];
    test = testGateway({
      canonicalise: () => unwrap,
      identify: (harness) => (request) => {
        seen.push({ harness, request });
        return { session: request.headers['x-session']!, agent: 'a1', depth: 1 };
      },
    });
    const rollout = await test.open('one', { harness: 'mine' });
    await rollout.ask({
      headers: { 'x-session': 's1', cookie: 'secret' },
      body: messagesBody([user('do<now>12:00</now>')]),
    });
    await test.gateway.close('one');
    expect(seen).toMatchObject([
      {
        harness: 'mine',
        request: {
          headers: { 'x-session': 's1' },
          messages: [{ role: 'system' }, { role: 'user', text: 'do<now>12:00</now>' }],
          tools: [{ name: 'Read' }],
        },
      },
    ]);
    expect(JSON.stringify(seen)).not.toMatch(/secret|tw-/);
    expect(startsOf(rollout.events())[0]!.identity).toEqual({ session: 's1', agent: 'a1', depth: 1 });
  });

  it('goes without an identity where the adapter fails, and with a call that does not', async () => {
    test = testGateway({
      identify: () => () => {
        throw new Error('a header that nobody foresaw');
      },
    });
    const rollout = await test.open('one');
    expect((await rollout.ask({ body: messagesBody([user('hi')]) })).status).toBe(200);
    await test.gateway.close('one');
    expect(startsOf(rollout.events())[0]).not.toHaveProperty('identity');
  });

  it('holds raw messages beside the canonical ones as deltas of their own, and none where they are equal', async () => {
    test = testGateway({ canonicalise: () => unwrap });
    const rollout = await test.open('one');
    const plain = await rollout.ask({ body: messagesBody([user('do')]) });
    const history = [user('do'), turnOf(plain), resultFor(plain, 'r')];
    const wrapped = await rollout.ask({ body: messagesBody([...history, user('<now>1</now>go')]) });
    const later = [turnOf(wrapped), resultFor(wrapped, 'q')];
    // The wrapping moves: canonically this continues, in the raw text it branches off before it.
    await rollout.ask({ body: messagesBody([...history, user('<now>2</now>go'), ...later]) });
    await test.gateway.close('one');

    const events = rollout.events();
    const starts = startsOf(events);
    expect(starts.map(({ raw }) => raw?.appended.length)).toEqual([undefined, 1 + 1, 1 + 1 + 1]);
    expect(starts[2]!.messages).toMatchObject({ parent: 1, appended: [{ role: 'tool', text: 'q' }] });
    const replies = new Map<number, Json>();
    for (const event of events) {
      if (event.type === 'call.sampled') {
        replies.set(event.call, { role: 'assistant', parts: event.reply.parts });
      }
    }
    const texts = (raw: boolean) =>
      whole(starts, replies, raw).map((list) =>
        list.map((message) => (message as { text?: string }).text ?? 'reply'),
      );
    const start = ['be good', 'do'];
    const middle = [...start, 'reply', 'r'];
    expect(texts(true)).toEqual([
      start,
      [...middle, '<now>1</now>go'],
      [...middle, '<now>2</now>go', 'reply', 'q'],
    ]);
    expect(texts(false)).toEqual([start, [...middle, 'go'], [...middle, 'go', 'reply', 'q']]);
    expect(promptsOf(events).map(({ graft }) => graft.reason)).toEqual(['root', 'reply', 'reply']);
  });

  it('says where a rewritten history first differs, and from which call', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const history: unknown[] = [user('task')];
    for (let k = 0; k < 3; k++) {
      const answer = await rollout.ask({ body: messagesBody(history) });
      history.push(turnOf(answer), resultFor(answer, `result ${k}`));
    }
    // system, task, reply, result, reply, result, …: the second result changed.
    const edited = history.with(4, resultFor({ json: { content: [{ id: 'x' }] } } as never, 'other'));
    await rollout.ask({ body: messagesBody(edited) });
    await rollout.ask({ body: messagesBody([user('new'), ...history.slice(1)]) });
    await test.gateway.close('one');
    const grafts = promptsOf(rollout.events()).map(({ graft }) => graft);
    expect(grafts.slice(0, 3).every(({ rewrite }) => rewrite === undefined)).toBe(true);
    expect(grafts[3]).toEqual({ reason: 'rewritten', keptMessages: 5, rewrite: { message: 5, call: 1 } });
    expect(grafts[4]).toEqual({ reason: 'rewritten', keptMessages: 0, rewrite: { message: 1, call: null } });
  });

  it('holds what the rollout saw, and a reply waits until it has looked', async () => {
    test = testGateway();
    const rollout = await test.open('one', { witnessArrivals: true });
    const asked = rollout.ask({ body: messagesBody([user('hi')]) });
    expect(await test.gateway.arrival('one', 0)).toBe(0);
    await test.gateway.witness('one', [
      {
        type: 'workspace',
        time: 5,
        call: 0,
        changes: [{ path: 'a.txt', kind: 'create', size: 3, sha256: 'ff' }],
      },
      { type: 'tool.exec', source: 'strace', pid: 7, command: 'ls', start: 1, end: 2, code: 0 },
    ]);
    expect((await asked).status).toBe(200);
    await test.gateway.close('one');
    expect(await test.gateway.arrival('one', 1)).toBeNull();
    await expect(test.gateway.witness('one', [])).rejects.toMatchObject({ code: 'GATEWAY_E_UNKNOWN' });
    const types = rollout.events().map(({ type }) => type);
    expect(types.filter((type) => type === 'workspace' || type === 'tool.exec')).toHaveLength(2);
    expect(types.indexOf('workspace')).toBeLessThan(types.indexOf('call.end'));
  });
});

describe('a weight update', () => {
  it('changes the version between calls, never inside one', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const { engine } = test;
    let release = (): void => undefined;
    engine.gate = new Promise((resolve) => (release = resolve));
    const before = rollout.ask({ body: messagesBody([user('first')]) });
    await expect.poll(() => engine.requests.length).toBe(1);
    await engine.load({ id: 'fake', version: 4 });
    engine.gate = null;
    const after = rollout.ask({ body: messagesBody([user('second')]) });
    expect((await after).status).toBe(200);
    release();
    expect((await before).status).toBe(200);
    await test.gateway.close('one');
    const versions = rollout
      .events()
      .flatMap((event) => (event.type === 'call.sampled' ? [[event.call, event.policy.version]] : []));
    expect(Object.fromEntries(versions)).toEqual({ 0: 3, 1: 4 });
  });
});
