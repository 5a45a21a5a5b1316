import { connect, type Socket } from 'node:net';
import type { CallEnd } from '@treeward/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import { ask } from './testing/client.js';
import { textIds } from './testing/fake-engine.js';
import {
  messagesBody,
  template,
  testGateway,
  type TestGateway,
  type TestRollout,
} from './testing/harness.js';

let test: TestGateway;
afterEach(() => test.dispose());

const user = (content: unknown) => ({ role: 'user', content });
const body = messagesBody([user('hi')]);

/** A connection that says what it is told to, byte by byte. */
async function rawClient(
  rollout: TestRollout,
): Promise<{ socket: Socket; received(): string; closed: Promise<void> }> {
  const socket = connect(rollout.socketPath);
  let text = '';
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  return { socket, received: () => text, closed };
}

const head = (rollout: TestRollout, length: number, more = ''): string =>
  `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: ${rollout.key}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${more}\r\n`;

const ends = (rollout: TestRollout): CallEnd[] =>
  rollout.events().filter((event): event is CallEnd => event.type === 'call.end');

describe('what a rollout says it is', () => {
  it('is its key alone: names of others in path, headers and body change nothing', async () => {
    test = testGateway();
    const one = await test.open('one');
    const two = await test.open('two');
    const foreign = { 'x-rollout-id': 'two', 'x-claude-code-session-id': 'two', 'session-id': 'two' };
    const named = messagesBody([user('of one')], {
      metadata: { user_id: '{"session_id":"two"}' },
      model: 'two',
    });
    expect((await one.ask({ headers: foreign, body: named })).status).toBe(200);
    expect((await one.ask({ path: '/r/two/v1/messages', headers: foreign, body: named })).status).toBe(404);
    expect((await ask(two.socketPath, { key: one.key, headers: foreign, body: named })).status).toBe(401);
    expect(test.engine.requests.map(({ tag }) => tag)).toEqual(['one']);
    expect(await test.gateway.status('two')).toMatchObject({ calls: 0 });
    await test.gateway.dispose();
    expect(JSON.stringify(one.events())).toContain('of one');
    expect(JSON.stringify(two.events())).not.toContain('of one');
  });
});

describe('limits', () => {
  it('a head that is too large is answered 431, and the connection goes on for others', async () => {
    test = testGateway({ limits: { maxHeaderBytes: 4096 } });
    const rollout = await test.open('one');
    const large = await rollout.ask({ headers: { 'x-large': 'x'.repeat(5000) }, body });
    expect(large.status).toBe(431);
    expect((await rollout.ask({ headers: { 'x-small': 'x'.repeat(3000) }, body })).status).toBe(200);
    expect((await test.gateway.status('one')).calls).toBe(1);
  });

  it('too many requests at once are put off in the words that clients wait for', async () => {
    test = testGateway({ limits: { maxConcurrent: 3 } });
    const [one, two] = [await test.open('one'), await test.open('two')];
    let open = (): void => undefined;
    test.engine.gate = new Promise((resolve) => (open = resolve));
    const waiting = [1, 2, 3].map(() => one.ask({ body }));
    await expect.poll(() => test.engine.requests.length).toBe(3);
    const refused = await one.ask({ body });
    expect(refused.status).toBe(429);
    expect(refused.headers['retry-after']).toBe('1');
    expect(refused.json.error.type).toBe('rate_limit_error');
    const other = two.ask({ body }); // another rollout has a count of its own
    await expect.poll(() => test.engine.requests.length).toBe(4);
    test.engine.gate = null;
    open();
    expect((await Promise.all([...waiting, other])).map(({ status }) => status)).toEqual([
      200, 200, 200, 200,
    ]);
    expect((await one.ask({ body })).status).toBe(200);
    expect((await test.gateway.status('one')).calls).toBe(4);
  });

  it('a body that does not come to its end is answered 408, and was no call', async () => {
    test = testGateway({ limits: { bodyTimeoutMs: 150 } });
    const rollout = await test.open('one');
    const { socket, received, closed } = await rawClient(rollout);
    socket.write(head(rollout, 1000));
    const drip = setInterval(() => socket.write(' '), 20); // signs of life do not buy more time
    await closed;
    clearInterval(drip);
    expect(received()).toMatch(/^HTTP\/1.1 408 /);
    expect(received()).toContain('not complete after 150 ms');
    await expect.poll(async () => (await test.gateway.status('one')).pending).toBe(0);
    expect((await test.gateway.status('one')).calls).toBe(0);
    expect((await rollout.ask({ body })).status).toBe(200);
  });

  it('a client that does not read is cut off, and only it', async () => {
    test = testGateway({ limits: { sendTimeoutMs: 300 } });
    // More than the buffers of a socket hold.
    const long = textIds(template, 'x'.repeat(2_000_000));
    test.engine.contextLength = 4_000_000;
    test.engine.answer = () => ({ tokens: long, logprobs: new Float32Array(long.length) });
    const rollout = await test.open('one', { budget: { maxCalls: 10, maxTokens: 1e9 } });
    const { socket, closed } = await rawClient(rollout);
    socket.pause();
    const text = JSON.stringify(body);
    socket.write(head(rollout, Buffer.byteLength(text)) + text);
    await expect.poll(() => test.engine.requests.length).toBe(1);
    const quick = await rollout.ask({ body });
    expect(quick.json.content[0].text).toHaveLength(2_000_000);
    await expect.poll(async () => (await test.gateway.status('one')).pending).toBe(0);
    socket.resume();
    await closed;
    await test.gateway.close('one');
    const [slow, fine] = ends(rollout).sort((a, b) => a.call - b.call);
    expect(slow).toMatchObject({ call: 0, delivery: 'partial', cause: 'gateway' });
    expect(fine).toMatchObject({ call: 1, delivery: 'complete', cause: 'done' });
  });

  it('an engine that says nothing is left after its time, and the call says so', async () => {
    test = testGateway({ engineAttemptMs: 50, engineRetryMs: 100 });
    const rollout = await test.open('one');
    test.engine.gate = new Promise(() => undefined);
    expect((await rollout.ask({ body })).status).toBe(529);
    expect((await test.gateway.status('one')).engineFailure).toContain('GATEWAY_E_ENGINE_SLOW');
    await test.gateway.close('one');
    expect(ends(rollout)).toMatchObject([{ cause: 'engine', delivery: 'none' }]);
  });

  it('an engine that does not even heed that it should stop does not hold a rollout that is closed', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    await rollout.ask({ body });
    test.engine.sample = () => new Promise(() => undefined);
    const asked = rollout.ask({ body }).catch(() => null);
    await expect.poll(async () => (await test.gateway.status('one')).pending).toBe(1);
    await test.gateway.close('one');
    await asked;
    expect(ends(rollout).at(-1)).toMatchObject({ call: 1, delivery: 'none' });
  });
});
