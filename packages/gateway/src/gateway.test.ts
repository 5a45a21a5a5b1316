import { statSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { ask, eventsOf } from './testing/client.js';
import { callIds, textIds } from './testing/fake-engine.js';
import {
  messagesBody,
  resultFor,
  template,
  testGateway,
  turnOf,
  type TestGateway,
} from './testing/harness.js';
import type { CallStart } from '@treeward/telemetry';
import type { ChatTemplate } from '@treeward/policy';

let test: TestGateway;
afterEach(() => test.dispose());

const user = (content: unknown) => ({ role: 'user', content });

describe('the door', () => {
  it('lets in only its own key', async () => {
    test = testGateway();
    const one = await test.open('one');
    const two = await test.open('two');
    const body = messagesBody([user('hi')]);
    for (const key of [null, '', 'x'.repeat(one.key.length), two.key, `${one.key}x`]) {
      const answer = await ask(one.socketPath, { key, body });
      expect(answer.status).toBe(401);
      expect(answer.json.error.type).toBe('authentication_error');
    }
    const chat = await ask(one.socketPath, { path: '/v1/chat/completions', body });
    expect(chat.status).toBe(401);
    expect(chat.json.error.code).toBe('invalid_api_key');
    const bearer = { authorization: `Bearer ${one.key}` };
    expect((await ask(one.socketPath, { headers: bearer, body })).status).toBe(200);
    expect((await one.ask({ body })).status).toBe(200);
    expect(await test.gateway.status('one')).toMatchObject({ calls: 2, pending: 0 });
    expect(await test.gateway.status('two')).toMatchObject({ calls: 0 });
  });

  it('answers HEAD, models and the rollout prefix, and 404 elsewhere, without a record', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    expect((await rollout.ask({ method: 'HEAD', path: '/api/hello' })).status).toBe(200);
    expect((await rollout.ask({ path: '/v1/embeddings', body: {} })).status).toBe(404);
    expect((await rollout.ask({ method: 'GET', path: '/v1/messages' })).status).toBe(404);
    expect((await rollout.ask({ path: '/r/two/v1/messages', body: {} })).json.error.type).toBe(
      'not_found_error',
    );
    expect((await rollout.ask({ method: 'GET', path: '/v1/models' })).json.data[0].id).toBe('policy');
    expect((await rollout.ask({ method: 'GET', path: '/r/one/v1/models/a%2Fb' })).json.id).toBe('a/b');
    expect((await rollout.ask({ method: 'GET', path: '/%', key: null })).status).toBe(404);
    expect((await rollout.ask({ method: 'GET', path: '/r/%/x', key: null })).status).toBe(404);
    expect((await test.gateway.status('one')).calls).toBe(0);
    const answer = await rollout.ask({
      path: '/r/one/v1/messages/?beta=true',
      body: messagesBody([user('hi')]),
    });
    expect(answer.status).toBe(200);
    await test.gateway.close('one');
    expect(rollout.events().map(({ type }) => type)).toEqual([
      'rollout.start',
      'engine',
      'call.start',
      'call.prompt',
      'call.sampled',
      'call.end',
    ]);
  });

  it('is open to any user of the sandbox', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    expect(statSync(rollout.socketPath).mode & 0o777).toBe(0o666);
    expect(statSync(rollout.socketPath.replace('/model.sock', '')).mode & 0o777).toBe(0o755);
  });

  it('refuses a second endpoint for a rollout and a socket path that is too long', async () => {
    test = testGateway();
    await test.open('one');
    await expect(test.open('one')).rejects.toMatchObject({ code: 'GATEWAY_E_OPEN' });
    const socketDirectory = `/tmp/${'x'.repeat(110)}`;
    await expect(test.open('two', { socketDirectory })).rejects.toMatchObject({
      code: 'GATEWAY_E_SOCKET_PATH',
    });
    await expect(test.gateway.status('two')).rejects.toMatchObject({ code: 'GATEWAY_E_UNKNOWN' });
  });
});

describe('a body', () => {
  it('may be compressed', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const body = gzipSync(JSON.stringify(messagesBody([user('hi')])));
    const answer = await rollout.ask({ headers: { 'content-encoding': 'gzip' }, body });
    expect(answer.json.role).toBe('assistant');
    const unknown = await rollout.ask({ headers: { 'content-encoding': 'lzma' }, body });
    expect(unknown.status).toBe(415);
    const damaged = await rollout.ask({ headers: { 'content-encoding': 'gzip' }, body: Buffer.from('no') });
    expect(damaged.status).toBe(400);
  });

  it('has a limit, packed or not, and must be understood', async () => {
    test = testGateway({ limits: { maxBodyBytes: 10_000 } });
    const rollout = await test.open('one');
    const long = JSON.stringify(messagesBody([user('x'.repeat(20_000))]));
    expect((await rollout.ask({ body: Buffer.from(long) })).status).toBe(413);
    const packed = await rollout.ask({ headers: { 'content-encoding': 'gzip' }, body: gzipSync(long) });
    expect(packed.status).toBe(413);
    expect(packed.json.error.type).toBe('request_too_large');
    expect((await rollout.ask({ body: Buffer.from('{') })).json.error.message).toContain('not JSON');
    expect((await rollout.ask({ body: {} })).json.error.message).toContain('messages');
    const image = await rollout.ask({ body: messagesBody([user([{ type: 'image', source: {} }])]) });
    expect(image.status).toBe(400);
    expect(image.json.error.message).toContain('image');
    expect((await test.gateway.status('one')).calls).toBe(0);
  });
});

describe('a conversation', () => {
  it('grows by grafting: each prompt begins with the one before and its sampled ids', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const history: unknown[] = [user('the task')];
    for (let k = 0; k < 4; k++) {
      const answer = await rollout.ask({ body: messagesBody(history) });
      expect(answer.json.stop_reason).toBe('tool_use');
      history.push(turnOf(answer), resultFor(answer, `the result ${k}`));
    }
    // A retry, body and all.
    await rollout.ask({ body: messagesBody(history.slice(0, 3)) });
    await test.gateway.close('one');

    const calls = rollout.tokens();
    const { requests } = test.engine;
    expect(requests.map(({ sampling }) => sampling.seed)).toEqual(
      [0, 1, 2, 3, 4].map((call) => `seed-one/${call}`),
    );
    for (const [call, { prompt, sampled }] of calls) {
      expect([...requests[call]!.prompt]).toEqual([...prompt]);
      expect([...test.engine.tokensFor(requests[call]!)]).toEqual([...sampled!]);
    }
    for (let call = 1; call < 4; call++) {
      const before = calls.get(call - 1)!;
      const start = [...before.prompt, ...before.sampled!];
      expect([...calls.get(call)!.prompt.subarray(0, start.length)]).toEqual(start);
    }
    expect([...calls.values()].map(({ graft }) => graft.reason)).toEqual([
      'root',
      'reply',
      'reply',
      'reply',
      'same-prompt',
    ]);
    expect([...calls.get(4)!.prompt]).toEqual([...calls.get(1)!.prompt]);
    // Record and files grow with what is new: nothing of the history is written twice.
    const starts = rollout.events().filter((event): event is CallStart => event.type === 'call.start');
    expect(starts.map(({ messages }) => [messages.parent, messages.kept, messages.appended.length])).toEqual([
      [null, 0, 2],
      [0, 3, 1],
      [1, 5, 1],
      [2, 7, 1],
      [1, 4, 0],
    ]);
    expect(starts.map(({ tools }) => tools.specs !== undefined)).toEqual([true, false, false, false, false]);
  });

  it('reports true token counts and keeps secrets out of the record', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const headers = {
      authorization: `Bearer ${rollout.key}`,
      cookie: 'a=b',
      'x-rollout-id': 'one',
      'x-copy': `<${rollout.key}>`,
    };
    const answer = await rollout.ask({ headers, body: messagesBody([user('hi')], { brand_new: 1 }) });
    const [request] = test.engine.requests;
    const sampled = test.engine.tokensFor(request!).length;
    expect(answer.json.usage).toMatchObject({ input_tokens: request!.prompt.length, output_tokens: sampled });
    expect(await test.gateway.close('one')).toEqual({
      calls: 1,
      promptTokens: request!.prompt.length,
      sampledTokens: sampled,
      malformed: 0,
      pending: 0,
      engineFailure: null,
    });
    const [, , start, , reply, end] = rollout.events();
    expect(JSON.stringify(rollout.events())).not.toContain(rollout.key);
    expect(start).toMatchObject({ unknown: ['brand_new'], requested: { maxTokens: 1000 } });
    expect((start as CallStart).headers).toMatchObject({ 'x-rollout-id': 'one', 'x-copy': '<<key>>' });
    expect((start as CallStart).headers).not.toHaveProperty('cookie');
    expect(reply).toMatchObject({
      policy: { id: 'fake', version: 3 },
      sampling: { temperature: 1, maxTokens: 90, bannedIds: [...template.bannedIds] },
      finish: 'stop',
    });
    expect(end).toMatchObject({ delivery: 'complete', cause: 'done', status: 200 });
  });

  it('counts tokens without sampling', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const body = messagesBody([user('hi')]);
    const counted = await rollout.ask({ path: '/v1/messages/count_tokens', body });
    expect(test.engine.requests.length).toBe(0);
    expect(counted.json).toEqual({ input_tokens: (await rollout.ask({ body })).json.usage.input_tokens });
  });

  it('honours the smaller max_tokens and says when a reply was cut', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    test.engine.answer = () => ({ finish: 'length' });
    const answer = await rollout.ask({ body: messagesBody([user('hi')], { max_tokens: 7 }) });
    expect(test.engine.requests[0]!.sampling.maxTokens).toBe(7);
    expect(answer.json.stop_reason).toBe('max_tokens');
  });

  it('hands a malformed reply to the harness as text', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const cut = callIds(template, 'Read', 'file_path', 'x').slice(0, -1);
    test.engine.answer = ({ prompt }) =>
      prompt.length > 0 ? { tokens: cut, logprobs: new Float32Array(cut.length) } : {};
    const answer = await rollout.ask({ body: messagesBody([user('hi')]) });
    expect(answer.json.content).toEqual([{ type: 'text', text: template.decode(cut) }]);
    expect(answer.json.stop_reason).toBe('end_turn');
    test.engine.answer = () => ({ tokens: new Int32Array(0), logprobs: new Float32Array(0) });
    const empty = await rollout.ask({ body: messagesBody([user('ho')]) });
    expect(empty.json.content).toEqual([{ type: 'text', text: '' }]);
    expect((await test.gateway.close('one')).malformed).toBe(2);
  });
});

describe('a stream', () => {
  it('has the whole life cycle in both dialects', async () => {
    test = testGateway();
    const rollout = await test.open('one');
    const body = messagesBody([user('hi')], { stream: true });
    const events = eventsOf((await rollout.ask({ body })).text);
    expect(events.map(({ type }) => type).join(' ')).toMatch(
      /^message_start ping content_block_start( content_block_delta)+ content_block_stop message_delta message_stop$/,
    );
    expect(events.at(-2).delta.stop_reason).toBe('tool_use');

    const chatBody = {
      model: 'm',
      stream: true,
      stream_options: { include_usage: true },
      messages: [user('hi')],
      tools: [{ type: 'function', function: { name: 'read' } }],
    };
    const chat = eventsOf((await rollout.ask({ path: '/v1/chat/completions', body: chatBody })).text);
    expect(chat.at(-1)).toBe('[DONE]');
    expect(chat.at(-2).usage.prompt_tokens).toBe(test.engine.requests[1]!.prompt.length);
    expect(chat.at(-3).choices[0].finish_reason).toBe('tool_calls');
  });

  it('is kept warm while the policy thinks', async () => {
    test = testGateway({ openAfterMs: 20, keepAliveMs: 20 });
    test.engine.delayMs = 400;
    const rollout = await test.open('one');
    const answer = await rollout.ask({ body: messagesBody([user('hi')], { stream: true }) });
    const types = eventsOf(answer.text).map(({ type }) => type);
    expect(types[0]).toBe('message_start');
    expect(types.filter((type) => type === 'ping').length).toBeGreaterThan(2);
    expect(types.at(-1)).toBe('message_stop');
    const chat = await rollout.ask({
      path: '/v1/chat/completions',
      body: { stream: true, messages: [user('hi')] },
    });
    expect(chat.text).toContain('\n\n: keep-alive\n\n');
    await test.gateway.close('one');
    const ends = rollout.events().filter((event) => event.type === 'call.end');
    const starts = rollout.events().filter((event) => event.type === 'call.start');
    // Keep-alives are no content: the first byte comes when sampling is over.
    ends.forEach(({ firstByte }, i) => expect(firstByte! - starts[i]!.time).toBeGreaterThanOrEqual(390));
  });

  it('takes several calls of one reply', async () => {
    const callPart = (name: string) => ({ type: 'tool_call' as const, id: '', name, arguments: {} });
    // The compact template has one call per turn; what a template with more parses must come through whole.
    const several: ChatTemplate = {
      id: 'several',
      vocabSize: template.vocabSize,
      stopIds: template.stopIds,
      bannedIds: template.bannedIds,
      generation: template.generation,
      head: (list) => template.head(list),
      message: (message) => template.message(message),
      reply: (parts) => template.reply(parts),
      decode: (ids) => template.decode(ids),
      parse: () => ({ parts: [{ type: 'text', text: 'both' }, callPart('a'), callPart('b')] }),
    };
    test = testGateway({ template: several });
    const rollout = await test.open('one');
    const streamed = await rollout.ask({ body: messagesBody([user('hi')], { stream: true }) });
    const blocks = eventsOf(streamed.text)
      .filter(({ type }) => type === 'content_block_start')
      .map(({ content_block }) => content_block);
    expect(blocks.map(({ type, name }) => name ?? type)).toEqual(['text', 'a', 'b']);
    expect(blocks[1].id).not.toBe(blocks[2].id);
    const whole = await rollout.ask({ body: messagesBody([user('hi')]) });
    await rollout.ask({ body: messagesBody([user('hi'), turnOf(whole), resultFor(whole, 'x')]) });
    await test.gateway.close('one');
    expect(rollout.tokens().get(2)!.graft.reason).toBe('reply');
  });
});

describe('limits', () => {
  it('refuse a prompt over the window in the words that start compaction', async () => {
    test = testGateway();
    test.engine.contextLength = 60;
    const rollout = await test.open('one');
    const long = 'x'.repeat(80);
    const answer = await rollout.ask({ body: messagesBody([user(long)], { stream: true }) });
    expect(answer.status).toBe(400);
    expect(answer.json.error.type).toBe('invalid_request_error');
    expect(answer.json.error.message).toMatch(/^prompt is too long: \d+ tokens > 60 maximum$/);
    const chat = await rollout.ask({ path: '/v1/chat/completions', body: { messages: [user(long)] } });
    expect(chat.json.error).toMatchObject({ code: 'context_length_exceeded' });
    expect(chat.json.error.message).toContain('maximum context length is 60 tokens');
    // A little room is used, and no more.
    await rollout.ask({ body: messagesBody([user('x'.repeat(30))]) });
    const [request] = test.engine.requests;
    expect(request!.sampling.maxTokens).toBe(60 - request!.prompt.length);
    expect(await test.gateway.close('one')).toMatchObject({ calls: 3, engineFailure: null });
  });

  it('end a rollout that used up its calls or tokens', async () => {
    test = testGateway();
    const calls = await test.open('calls', { budget: { maxCalls: 1, maxTokens: 1000 } });
    const tokens = await test.open('tokens', { budget: { maxCalls: 9, maxTokens: 1 } });
    const body = messagesBody([user('hi')]);
    for (const [rollout, message] of [
      [calls, 'budget of 1 model calls'],
      [tokens, 'budget of 1 sampled tokens'],
    ] as const) {
      expect((await rollout.ask({ body })).status).toBe(200);
      const refused = await rollout.ask({ body });
      expect(refused.status).toBe(400);
      expect(refused.headers['x-should-retry']).toBe('false');
      expect(refused.json.error.message).toContain(message);
      expect(await test.gateway.close(rollout.id)).toMatchObject({ calls: 2, pending: 0 });
      expect(rollout.events().at(-1)).toMatchObject({ status: 400, delivery: 'none', cause: 'done' });
    }
  });
});

describe('matching', () => {
  it('finds the reply in the form that the harness and its canonicaliser give it', async () => {
    test = testGateway({
      // As an adapter does: absolute paths become relative, in what was sampled and in what comes back.
      canonicalise: (harness) => (messages) =>
        messages.map((message) =>
          harness === 'abs' && message.role === 'assistant'
            ? (JSON.parse(JSON.stringify(message).replaceAll('/workspace/', '')) as typeof message)
            : message,
        ),
    });
    const rollout = await test.open('one', { harness: 'abs' });
    const sampled = callIds(template, 'Read', 'file_path', 'the.txt');
    test.engine.answer = () => ({ tokens: sampled, logprobs: new Float32Array(sampled.length) });
    const first = await rollout.ask({ body: messagesBody([user('hi')]) });
    const [block] = first.json.content;
    const turn = {
      role: 'assistant',
      content: [{ ...block, id: 'rewritten', input: { file_path: '/workspace/the.txt' } }],
    };
    test.engine.answer = () => ({ tokens: textIds(template, 'Done.'), logprobs: new Float32Array(6) });
    await rollout.ask({ body: messagesBody([user('hi'), turn, user('go')]) });
    await test.gateway.close('one');
    expect(rollout.tokens().get(1)!.graft).toEqual({ reason: 'reply', keptMessages: 3 });
  });
});
