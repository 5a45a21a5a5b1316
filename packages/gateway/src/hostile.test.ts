import { execFileSync } from 'node:child_process';
import { createReadStream, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { messagesBody, testGateway, type TestGateway } from './testing/harness.js';

let test: TestGateway;
afterEach(() => test.dispose());

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const body = (more: object): string =>
  JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], max_tokens: 10, ...more });
const tool = (name: string): object => ({
  type: 'function',
  name,
  input_schema: { type: 'object' },
  function: { name, parameters: {} },
});

/** For Messages and Chat as they stand; for Responses `messages` is called `input`. */
const BODIES: Record<string, string> = {
  nothing: '',
  null: 'null',
  'a list': '[]',
  'a byte order mark': `\ufeff${body({})}`,
  'something behind it': `${body({})}x`,
  'no messages': '{}',
  'null messages': '{"messages":null}',
  'messages that are none': '{"messages":[null,1,"x"]}',
  'deep content': `{"messages":[{"role":"user","content":${deep(5000)}}]}`,
  'a deep schema': `{"messages":[],"tools":[{"type":"function","name":"a","input_schema":{"x":${deep(5000)}}}]}`,
  'only brackets': deep(200_000),
  'names of prototypes': String.raw`{"__proto__":{"x":1},"messages":[
    {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"__proto__","input":{"__proto__":{"a":1}}}],
     "tool_calls":[{"id":"1","type":"function","function":{"name":"constructor","arguments":"{\"__proto__\":1}"}}]},
    {"role":"user","content":"b","__proto__":{"content":"other"}}]}`,
  'a role of a prototype': '{"messages":[{"role":"__proto__","content":"x"}]}',
  'half characters': String.raw`{"messages":[{"role":"user","content":"\ud800 \udfff \u0000"}]}`,
  'blocks of all kinds': `{"messages":[{"role":"user","content":["a",{"type":"text"},{"type":"text","text":null},
    {"type":"zzz"},{"type":"tool_result"},{"type":"tool_result","content":{"a":1}}]}]}`,
  'an image in a result': `{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image"}]}]}]}`,
  'a fraction of tokens': body({ max_tokens: 1.5, max_completion_tokens: 1.5, max_output_tokens: 1.5 }),
  'less than one token': body({ max_tokens: 1e-9, max_output_tokens: -3 }),
  'no end of tokens': body({ max_tokens: 1e300, max_output_tokens: 1e300 }),
  'infinite tokens': body({}).replace('10', '1e999'),
  'strange temperatures': body({ temperature: 1e308, top_p: 0 }),
  'negative temperatures': body({ temperature: -1, top_p: 7 }),
  'a top-k of no integer': body({ top_k: 1.5 }),
  'a top-k of no engine': body({ top_k: 1e300 }),
  'a stream that is a word': body({ stream: 'yes' }),
  '20,000 tools': body({ tools: Array.from({ length: 20_000 }, (_, i) => tool(`t${i}`)) }),
  'tools that are none': body({ tools: [{}, { name: 1 }, { type: 'function', function: null }, tool('')] }),
};

describe.each(['/v1/messages', '/v1/chat/completions', '/v1/responses'])('%s', (path) => {
  it('answers any body in its own shape, and goes on', async () => {
    test = testGateway();
    test.engine.contextLength = 1_000_000;
    const rollout = await test.open('one', {
      samplingFrom: 'request',
      budget: { maxCalls: 999, maxTokens: 1e9 },
    });
    for (const [what, text] of Object.entries(BODIES)) {
      const named = path === '/v1/responses' ? text.replace('"messages":', '"input":') : text;
      const { status, json } = await rollout.ask({ path, body: Buffer.from(named) });
      expect([200, 400], `${what}: ${JSON.stringify(json)}`).toContain(status);
      if (status === 400) expect(json.error.message, what).toEqual(expect.any(String));
      expect((await test.gateway.status('one')).engineFailure, what).toBeNull();
    }
    for (const { sampling } of test.engine.requests) {
      expect(Number.isInteger(sampling.maxTokens) && sampling.maxTokens >= 1).toBe(true);
      expect(Number.isInteger(sampling.topK) && Math.abs(sampling.topK) < 2 ** 31).toBe(true);
      expect(sampling.topP > 0 && sampling.topP <= 1).toBe(true);
      expect(sampling.temperature).toBeGreaterThanOrEqual(0);
    }
    expect(test.engine.requests.length).toBeGreaterThan(8);
    await test.gateway.close('one');
    const calls = rollout.events().filter(({ type }) => type === 'call.end');
    expect(calls).toHaveLength(test.engine.requests.length);
  });
});

describe('a key', () => {
  it('of the right length in other letters is refused like any wrong one', async () => {
    test = testGateway();
    const { socketPath, key } = await test.open('one');
    const received = await new Promise<string>((resolve) => {
      const socket = connect(socketPath);
      let text = '';
      socket.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      socket.on('close', () => resolve(text));
      const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: ${'é'.repeat(key.length)}`;
      socket.end(Buffer.from(`${head}\r\ncontent-length: 2\r\n\r\n{}`, 'latin1'));
    });
    expect(received).toMatch(/^HTTP\/1.1 401 /);
  });
});

describe('a disk that is behind', () => {
  it('puts calls off instead of filling the memory', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tw-slow-'));
    // A pipe holds 64 KiB and then takes nothing until somebody reads.
    const pipe = join(directory, 'telemetry.ndjson');
    execFileSync('mkfifo', [pipe]);
    test = testGateway();
    const rollout = await test.open('one', { recordDirectory: directory });
    const system = 'x'.repeat(9 << 20); // more than a writer queues
    const question = (content: string): unknown => messagesBody([{ role: 'user', content }], { system });
    expect((await rollout.ask({ body: question('one') })).status).toBe(200);
    let answered = false;
    const second = rollout.ask({ body: question('two') }).then(({ status }) => {
      answered = true;
      return status;
    });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(answered).toBe(false);
    expect(test.engine.requests).toHaveLength(1);

    const disk = createReadStream(pipe).resume();
    expect(await second).toBe(200);
    await test.gateway.close('one');
    disk.destroy();
    rmSync(directory, { recursive: true });
  });
});
