import { trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { pino } from 'pino';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import { afterEach, describe, expect, it } from 'vitest';
import { remoteGateway, serveGateway } from './gateway-rpc.js';
import { messagesBody, resultFor, testGateway, turnOf, type TestGateway } from './testing/harness.js';
import type { GatewayOptions } from './types.js';

let test: TestGateway;
afterEach(async () => {
  await test.dispose();
  trace.disable();
});

const user = (content: unknown) => ({ role: 'user', content });
const SECRET = 'the-secret-of-the-prompt';

/** A gateway, what it logs, and two calls of a rollout, a refusal and a failure. */
async function busy(options: Partial<GatewayOptions> = {}): Promise<{ key: string; log: () => string }> {
  const lines: string[] = [];
  test = testGateway({
    log: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }),
    engineRetryMs: 50,
    ...options,
  });
  const rollout = await test.open('one');
  const first = await rollout.ask({ body: messagesBody([user(SECRET)]) });
  const history = [user(SECRET), turnOf(first), resultFor(first, `${SECRET} again`)];
  await rollout.ask({ body: messagesBody(history, { stream: true }) });
  await rollout.ask({ key: 'wrong', body: messagesBody(history) });
  await rollout.ask({ body: Buffer.from(`{"${SECRET}`) });
  test.engine.answer = () => {
    throw new TreewardError('ENGINE_E_ODD', `could not go on after ${SECRET}`);
  };
  await rollout.ask({ body: messagesBody([user(`${SECRET} once more`)]) });
  return { key: rollout.key, log: () => lines.join('') };
}

/** Value of a sample by its name and labels as they stand. */
const sampleOf = (text: string, name: string): number =>
  Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1],
  );

describe('metrics', () => {
  it('count calls, tokens, grafts, phases and refusals, without naming rollouts', async () => {
    await busy();
    const text = await test.gateway.metricsText();
    const calls = 'treeward_gateway_calls_total{dialect="anthropic-messages"';
    expect(sampleOf(text, `${calls},status="200",cause="done"}`)).toBe(2);
    expect(sampleOf(text, `${calls},status="529",cause="engine"}`)).toBe(1);
    expect(sampleOf(text, 'treeward_gateway_refused_total{status="401"}')).toBe(1);
    expect(sampleOf(text, 'treeward_gateway_refused_total{status="400"}')).toBe(1);
    expect(sampleOf(text, 'treeward_gateway_grafts_total{reason="reply"}')).toBe(1);
    expect(sampleOf(text, 'treeward_gateway_grafts_total{reason="root"}')).toBe(2);
    const { promptTokens, sampledTokens } = await test.gateway.status('one');
    expect(sampleOf(text, 'treeward_gateway_tokens_total{kind="sampled"}')).toBe(sampledTokens);
    expect(sampleOf(text, 'treeward_gateway_tokens_total{kind="prompt"}')).toBeGreaterThan(promptTokens);
    for (const phase of ['read', 'parse', 'match', 'encode', 'sample', 'record']) {
      expect(sampleOf(text, `treeward_gateway_phase_seconds_count{phase="${phase}"}`)).toBe(3);
    }
    expect(sampleOf(text, 'treeward_gateway_phase_seconds_count{phase="render"}')).toBe(2);
    expect(sampleOf(text, 'treeward_gateway_open_rollouts')).toBe(1);
    expect(sampleOf(text, 'treeward_gateway_in_flight')).toBe(0);
    expect(sampleOf(text, 'treeward_gateway_encodings')).toBeGreaterThan(3);
    expect(sampleOf(text, 'treeward_gateway_loop_delay_p99_seconds')).toBeGreaterThanOrEqual(0);
    expect(text).not.toMatch(/"one"|secret|tw-/);
    await test.gateway.close('one');
    expect(sampleOf(await test.gateway.metricsText(), 'treeward_gateway_open_rollouts')).toBe(0);
  });

  it('are read from other processes', async () => {
    test = testGateway();
    const path = join(mkdtempSync(join(tmpdir(), 'tw-gw-')), 'g.sock');
    const server = await serveGateway(path, test.gateway);
    const remote = remoteGateway(path);
    expect(await remote.metricsText()).toContain('# TYPE treeward_gateway_calls_total counter');
    remote.disconnect();
    await server.close();
  });
});

describe('spans', () => {
  it('cover a call and its phases where the application has an SDK', async () => {
    const exporter = new InMemorySpanExporter();
    trace.setGlobalTracerProvider(
      new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
    );
    await busy();
    const spans = exporter.getFinishedSpans();
    const calls = spans.filter(({ attributes }) => attributes['treeward.call'] === 1);
    expect(calls).toHaveLength(1);
    const [call] = calls;
    expect(call).toMatchObject({
      name: 'gateway.call',
      attributes: {
        'treeward.rolloutId': 'one',
        'treeward.dialect': 'anthropic-messages',
        'treeward.graft': 'reply',
        'treeward.status': 200,
      },
    });
    const inside = spans.filter(
      ({ parentSpanContext }) => parentSpanContext?.spanId === call!.spanContext().spanId,
    );
    expect(new Set(inside.map(({ name }) => name))).toEqual(
      new Set(
        ['read', 'parse', 'match', 'record', 'encode', 'sample', 'render', 'send'].map(
          (name) => `gateway.${name}`,
        ),
      ),
    );
    const failed = spans.find(({ attributes }) => attributes['treeward.call'] === 2);
    expect(failed!.status.code).toBe(2);
    expect(
      JSON.stringify(spans.map(({ attributes, name, events }) => [attributes, name, events])),
    ).not.toContain(SECRET);
  });
});

describe('the log', () => {
  it('has a line per call and refusal with facts and times, and no text, reply or key', async () => {
    const { key, log } = await busy();
    const lines = log()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ msg, status, cause, graft, code }) => [msg, status, cause, graft, code])).toEqual([
      ['call', 200, 'done', 'root', undefined],
      ['call', 200, 'done', 'reply', undefined],
      ['refused', 400, undefined, undefined, 'DIALECT_E_BODY'],
      ['call', 529, 'engine', 'root', 'GATEWAY_E_ENGINE'],
    ]);
    expect(lines[1]).toMatchObject({ rolloutId: 'one', call: 1, ms: { sample: expect.any(Number) } });
    for (const word of [SECRET, key, 'file_path', 'be good', 'Read']) expect(log()).not.toContain(word);
  });

  it('has the texts where they are asked for, and still no key', async () => {
    const { key, log } = await busy({ logPrompts: true });
    for (const word of [SECRET, 'file_path', 'be good']) expect(log()).toContain(word);
    expect(log()).not.toContain(key);
  });
});
