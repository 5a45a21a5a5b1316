import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { CallEnd } from '@treeward/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import { remoteGateway, serveGateway } from './gateway-rpc.js';
import { eventsOf } from './testing/client.js';
import {
  messagesBody,
  resultFor,
  testGateway,
  turnOf,
  type TestGateway,
  type TestRollout,
} from './testing/harness.js';

let test: TestGateway;
afterEach(() => test.dispose());

const user = (content: unknown) => ({ role: 'user', content });
const body = messagesBody([user('hi')]);
const streamed = messagesBody([user('hi')], { stream: true });

async function ends(rollout: TestRollout): Promise<CallEnd[]> {
  await test.gateway.close(rollout.id);
  return rollout.events().filter((event): event is CallEnd => event.type === 'call.end');
}

/** Polls until it holds; the test's own timeout is the limit. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}

describe('an engine that fails', () => {
  it.each(['RPC_E_UNREACHABLE', 'ENGINE_E_NO_POLICY'])(
    'with %s and comes back is not seen by the harness',
    async (code) => {
      test = testGateway();
      test.engine.down = code;
      const rollout = await test.open('one');
      const pending = rollout.ask({ body });
      await sleep(300);
      expect(await test.gateway.status('one')).toMatchObject({ pending: 1, engineFailure: null });
      test.engine.down = null;
      expect((await pending).status).toBe(200);
      expect(await ends(rollout)).toMatchObject([{ cause: 'done', delivery: 'complete' }]);
    },
  );

  it('for good ends the call with the status of an overloaded server, and later calls at once', async () => {
    test = testGateway({ engineRetryMs: 200, openAfterMs: 50, keepAliveMs: 50 });
    const rollout = await test.open('one');
    await rollout.ask({ body }); // the engine's facts are known, so the next one waits inside its stream
    test.engine.down = 'RPC_E_UNREACHABLE';
    const late = await rollout.ask({ body: streamed });
    expect(late.status).toBe(200);
    expect(eventsOf(late.text).at(-1)).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } });
    const asked = test.engine.requests.length;
    const next = await rollout.ask({ body });
    expect(next.status).toBe(529);
    expect(next.headers['x-should-retry']).toBe('false');
    const chat = await rollout.ask({ path: '/v1/chat/completions', body: { messages: [user('hi')] } });
    expect(chat.status).toBe(500);
    expect(test.engine.requests.length).toBe(asked);
    expect((await test.gateway.status('one')).engineFailure).toContain('RPC_E_UNREACHABLE');
    expect((await ends(rollout)).map(({ cause, delivery, status }) => [cause, delivery, status])).toEqual([
      ['done', 'complete', 200],
      ['engine', 'none', 529],
      ['engine', 'none', 529],
      ['engine', 'none', 500],
    ]);
  });

  it('in a way that no restart explains is asked three times', async () => {
    test = testGateway({ engineRetryMs: 60_000 });
    test.engine.answer = () => ({ logprobs: new Float32Array(1) });
    const rollout = await test.open('one');
    expect((await rollout.ask({ body })).status).toBe(529);
    expect(test.engine.requests.length).toBe(3);
    expect((await test.gateway.status('one')).engineFailure).toMatch(/GATEWAY_E_SAMPLED.*1 logprobs/);
  });

  it('or consumes another prompt than it was sent is not trusted', async () => {
    test = testGateway();
    test.engine.answer = ({ prompt }) => ({ prompt: prompt.slice(1) });
    const rollout = await test.open('one');
    expect((await rollout.ask({ body })).status).toBe(529);
    expect((await test.gateway.status('one')).engineFailure).toContain('another prompt');
  });
});

/** A gate to hold samplings back with, and what opens it. */
function closeGate(): () => void {
  let open = (): void => undefined;
  test.engine.gate = new Promise((resolve) => (open = resolve));
  return () => {
    test.engine.gate = null;
    open();
  };
}

/** A client that goes away while its reply is sampled; resolves when the gateway can have noticed. */
async function leave(rollout: TestRollout, request: unknown): Promise<void> {
  const before = test.engine.requests.length;
  const gone = rollout.ask({
    body: request,
    onRequest: (sent) => void until(() => test.engine.requests.length > before).then(() => sent.destroy()),
  });
  await expect(gone).rejects.toThrow();
  await sleep(100);
}

describe('a client that leaves', () => {
  it('while sampling loses nothing of the record, and its retry gets the same prompt', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const open = closeGate();
    await leave(rollout, streamed);
    expect((await test.gateway.status('one')).pending).toBe(1);
    open();
    expect((await rollout.ask({ body })).status).toBe(200);
    await until(async () => (await test.gateway.status('one')).pending === 0);
    expect((await ends(rollout)).sort((a, b) => a.call - b.call)).toMatchObject([
      { call: 0, cause: 'client', delivery: 'none', firstByte: null, status: 499 },
      { call: 1, cause: 'done', delivery: 'complete', status: 200 },
    ]);
    const calls = rollout.tokens();
    expect([...calls.get(1)!.prompt]).toEqual([...calls.get(0)!.prompt]);
    expect(calls.get(1)!.graft.reason).toBe('same-prompt');
    expect([...calls.get(0)!.sampled!]).toEqual([...test.engine.tokensFor(test.engine.requests[0]!)]);
  });

  it('is still sampled to the end when the rollout closes at once', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const open = closeGate();
    await leave(rollout, body);
    setTimeout(open, 50);
    expect(await ends(rollout)).toMatchObject([{ cause: 'client', delivery: 'none' }]);
    expect(rollout.tokens().get(0)!.sampled!.length).toBeGreaterThan(0);
  });

  it('before its body is complete was no call', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const gone = rollout.ask({
      headers: { 'content-length': '100' },
      body: Buffer.from('{'),
      onRequest: (request) => setTimeout(() => request.destroy(), 30),
    });
    await expect(gone).rejects.toThrow();
    await until(async () => (await test.gateway.status('one')).pending === 0);
    expect((await test.gateway.close('one')).calls).toBe(0);
  });
});

describe('closing', () => {
  it('ends what is under way, refuses what comes, and can be repeated', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    closeGate();
    const waiting = rollout.ask({ body: streamed });
    const observed = expect(waiting).rejects.toThrow();
    await until(() => test.engine.requests.length === 1);
    const summary = await test.gateway.close('one');
    await observed;
    expect(summary).toMatchObject({ calls: 1, pending: 0, engineFailure: null });
    expect(await test.gateway.close('one')).toEqual(summary);
    expect(await test.gateway.status('one')).toEqual(summary);
    await expect(rollout.ask({ body })).rejects.toThrow(/ENOENT|ECONNREFUSED/);
    expect(await ends(rollout)).toMatchObject([{ cause: 'gateway', delivery: 'none' }]);
    await expect(test.gateway.close('never')).rejects.toMatchObject({ code: 'GATEWAY_E_UNKNOWN' });
  });

  it('does not wait for ever for a sampling that nobody waits for', async () => {
    test = testGateway({ closeGraceMs: 100 });
    const rollout = await test.open('one');
    closeGate();
    await leave(rollout, body);
    expect(await ends(rollout)).toMatchObject([{ cause: 'client', delivery: 'none' }]);
  });
});

describe('ordered faults', () => {
  it('say when to come back where harnesses ask for it', async () => {
    test = testGateway({ faults: { onCall: (_, call) => (call === 0 ? { status: 429 } : null) } });
    const rollout = await test.open('one');
    const first = await rollout.ask({ body });
    expect([first.status, first.headers['retry-after']]).toEqual([429, '1']);
    expect((await rollout.ask({ body })).status).toBe(200);
  });

  it('are what the harness sees, and a later call grows from what it did get', async () => {
    const plan = [{ status: 529 }, 'drop-before', 'drop-mid', null, null] as const;
    test = testGateway({ faults: { onCall: (_, call) => plan[call] ?? null } });
    const rollout = await test.open('one');
    const first = await rollout.ask({ body });
    expect(first.status).toBe(529);
    expect(first.json.error.type).toBe('overloaded_error');
    await expect(rollout.ask({ body })).rejects.toThrow();
    const cut = await rollout.ask({ body: streamed });
    expect(cut.cut).toBe(true);
    expect(cut.text).toContain('message_start');
    expect(cut.text).not.toContain('message_stop');
    const whole = await rollout.ask({ body });
    await rollout.ask({ body: messagesBody([user('hi'), turnOf(whole), resultFor(whole, 'x')]) });

    expect((await ends(rollout)).map(({ cause, delivery, status }) => [cause, delivery, status])).toEqual([
      ['gateway', 'none', 529],
      ['gateway', 'none', 499],
      ['gateway', 'partial', 200],
      ['done', 'complete', 200],
      ['done', 'complete', 200],
    ]);
    const calls = rollout.tokens();
    expect([0, 1, 2, 3, 4].map((call) => calls.get(call)!.sampled !== null)).toEqual([
      false,
      true,
      true,
      true,
      true,
    ]);
    expect([...calls.get(4)!.prompt].join()).toContain(
      [...calls.get(3)!.prompt, ...calls.get(3)!.sampled!].join(),
    );
  });
});

describe('many rollouts at once', () => {
  it('do not touch each other, also with several calls in flight in each', async () => {
    test = testGateway();
    test.engine.delayMs = 1;
    const rollouts = await Promise.all(Array.from({ length: 200 }, (_, i) => test.open(`r${i}`)));
    await Promise.all(
      rollouts.map(async (rollout, i) => {
        const task = [user(`the task ${i}`)];
        const side = [user(`the other task ${i}`)];
        const [main] = await Promise.all([
          rollout.ask({ body: messagesBody(task) }),
          rollout.ask({ body: messagesBody(side) }),
        ]);
        await rollout.ask({ body: messagesBody([...task, turnOf(main), resultFor(main, `result ${i}`)]) });
        expect(await test.gateway.close(rollout.id)).toMatchObject({ calls: 3, pending: 0 });
      }),
    );
    for (const [i, rollout] of rollouts.entries()) {
      const calls = [...rollout.tokens().values()];
      expect(calls.map(({ graft }) => graft.reason)).toEqual(['root', 'root', 'reply']);
      const mine = test.engine.requests.filter(({ tag }) => tag === rollout.id);
      expect(mine.map(({ prompt }) => [...prompt].join()).sort()).toEqual(
        calls.map(({ prompt }) => [...prompt].join()).sort(),
      );
      for (const { sampling } of mine) expect(sampling.seed).toMatch(new RegExp(`^seed-r${i}/[012]$`));
    }
  }, 60_000);
});

describe('from another process', () => {
  it('is the same gateway, errors included', async () => {
    test = testGateway();
    const socketPath = join(mkdtempSync(join(tmpdir(), 'tw-gr-')), 'gateway.sock');
    const server = await serveGateway(socketPath, test.gateway);
    const remote = remoteGateway(socketPath);
    const rollout = await test.open('one');
    await rollout.ask({ body });
    expect(await remote.status('one')).toEqual(await test.gateway.status('one'));
    await expect(remote.status('two')).rejects.toMatchObject({ code: 'GATEWAY_E_UNKNOWN' });
    expect(await remote.close('one')).toMatchObject({ calls: 1, pending: 0 });
    remote.disconnect();
    await server.close();
  });

  it('that starts again knows no earlier rollout, and counts none of its calls again', async () => {
    test = testGateway();
    const socketPath = join(mkdtempSync(join(tmpdir(), 'tw-gr-')), 'gateway.sock');
    const server = await serveGateway(socketPath, test.gateway);
    const remote = remoteGateway(socketPath, { retryFor: 10_000 });
    const rollout = await test.open('one');
    await rollout.ask({ body });
    await server.close(); // what is left of the first one is out of reach, as after its death
    const second = testGateway();
    const again = await serveGateway(socketPath, second.gateway);
    for (const asked of [remote.status('one'), remote.close('one'), remote.witness('one', [])]) {
      await expect(asked).rejects.toMatchObject({ code: 'GATEWAY_E_UNKNOWN' });
    }
    expect(await remote.arrival('one', 1)).toBeNull();
    await expect(second.open('one', { recordDirectory: rollout.directory })).rejects.toMatchObject({
      code: 'GATEWAY_E_RECORD',
    });
    expect((await second.open('one')).key).not.toBe(rollout.key);
    await test.gateway.close('one');
    const types = rollout.events().map(({ type }) => type);
    expect(types.filter((type) => type === 'rollout.start' || type === 'call.start')).toHaveLength(2);
    remote.disconnect();
    await again.close();
    await second.dispose();
  });
});
