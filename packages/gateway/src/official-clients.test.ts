import Anthropic from '@anthropic-ai/sdk';
import type { CallEnd } from '@treeward/telemetry';
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { testGateway, type TestGateway, type TestRollout } from './testing/harness.js';
import { officialClients, type OfficialClients } from './testing/sse-clients.js';
import { call, saying, speakingTemplate, text } from './testing/sse-speaker.js';
import type { GatewayOptions } from './types.js';

let test: TestGateway;
let rollout: TestRollout;
let clients: OfficialClients;
afterEach(async () => {
  await clients.close();
  await test.dispose();
});

async function open(options: Partial<GatewayOptions> = {}): Promise<void> {
  test = testGateway({ template: speakingTemplate, ...options });
  test.engine.contextLength = 100_000;
  rollout = await test.open('one');
  clients = await officialClients(rollout);
}

/** The next calls are answered with these turns, in order; the last one stays. */
function say(...turns: Parameters<typeof saying>[]): void {
  let next = 0;
  test.engine.answer = () => saying(...turns[Math.min(next++, turns.length - 1)]!);
}

async function ends(): Promise<CallEnd[]> {
  await test.gateway.close('one');
  return rollout.events().filter((event): event is CallEnd => event.type === 'call.end');
}

const grafts = async (): Promise<string[]> => {
  await test.gateway.close('one');
  return [...rollout.tokens().values()].map(({ graft }) => graft.reason);
};

const promptTokens = (index: number): number => test.engine.requests[index]!.prompt.length;

/** Text that no wrong cut of bytes survives, longer than one delta. */
const ODD = 'Ünïcödé 👩‍👩‍👧 \u2028 "quoted" \\ \n'.repeat(60);
const SEVERAL = [text(ODD), call('Read', { path: 'ä.txt' }), call('Bash', { command: ODD, n: 2 })];

/** The error; the value where there was none. */
const rejection = async (promise: PromiseLike<unknown>): Promise<unknown> =>
  promise.then(
    (value) => value,
    (error: unknown) => error,
  );

describe('@anthropic-ai/sdk', () => {
  const tools: Anthropic.Tool[] = ['Read', 'Bash'].map((name) => ({
    name,
    input_schema: { type: 'object', properties: { path: { type: 'string' } } },
  }));
  const ask = { model: 'any', max_tokens: 4000, tools };
  const hi: Anthropic.MessageParam = { role: 'user', content: 'hi' };
  const expected = [
    { type: 'text', text: ODD },
    { type: 'tool_use', name: 'Read', input: { path: 'ä.txt' } },
    { type: 'tool_use', name: 'Bash', input: { command: ODD, n: 2 } },
  ];

  it('reads a whole reply with several calls', async () => {
    await open();
    say([SEVERAL]);
    const message = await clients.anthropic.messages.create({ ...ask, messages: [hi] });
    expect(message).toMatchObject({ type: 'message', role: 'assistant', model: 'any', content: expected });
    expect(message.stop_reason).toBe('tool_use');
    expect(message.usage).toMatchObject({
      input_tokens: promptTokens(0),
      output_tokens: saying(SEVERAL).tokens!.length,
    });
    const [, read, bash] = message.content as [unknown, Anthropic.ToolUseBlock, Anthropic.ToolUseBlock];
    expect(read.id).toMatch(/^toolu_/);
    expect(bash.id).not.toBe(read.id);
  });

  it('puts the same message together from a stream, with signs of life in it', async () => {
    await open({ openAfterMs: 5, keepAliveMs: 5 });
    say([SEVERAL]);
    const whole = await clients.anthropic.messages.create({ ...ask, messages: [hi] });
    test.engine.delayMs = 100;
    const heard: string[] = [];
    const stream = clients.anthropic.messages
      .stream({ ...ask, messages: [hi] })
      .on('text', (delta) => heard.push(delta));
    const message = await stream.finalMessage();
    expect(message.content).toMatchObject(expected);
    expect(message.stop_reason).toBe(whole.stop_reason);
    expect(message.usage).toMatchObject({ ...whole.usage });
    expect(heard.join('')).toBe(ODD);
    expect(heard.length).toBeGreaterThan(1);
  });

  it('sends a streamed turn back as history that continues the conversation', async () => {
    await open();
    say([SEVERAL], [[text('done')]]);
    const { content } = await clients.anthropic.messages.stream({ ...ask, messages: [hi] }).finalMessage();
    const results = content.flatMap((block) =>
      block.type === 'tool_use'
        ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'ok' }]
        : [],
    );
    const next = await clients.anthropic.messages.create({
      ...ask,
      messages: [hi, { role: 'assistant', content }, { role: 'user', content: results }],
    });
    expect(next).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'done' }] });
    expect(await grafts()).toEqual(['root', 'reply']);
  });

  it('says when a reply was cut', async () => {
    await open();
    say([[text('cut')], 'length']);
    for (const stream of [false, true]) {
      const message = stream
        ? await clients.anthropic.messages.stream({ ...ask, messages: [hi] }).finalMessage()
        : await clients.anthropic.messages.create({ ...ask, messages: [hi] });
      expect(message.stop_reason).toBe('max_tokens');
    }
  });

  it('counts tokens and lists models', async () => {
    await open();
    say([[text('x')]]);
    const { input_tokens } = await clients.anthropic.messages.countTokens({
      model: 'any',
      tools,
      messages: [hi],
    });
    await clients.anthropic.messages.create({ ...ask, messages: [hi] });
    expect(input_tokens).toBe(promptTokens(0));
    const listed: string[] = [];
    for await (const model of clients.anthropic.models.list()) listed.push(`${model.type} ${model.id}`);
    expect(listed).toEqual(['model policy']);
    expect(await clients.anthropic.models.retrieve('org/name')).toMatchObject({
      id: 'org/name',
      type: 'model',
      display_name: 'org/name',
    });
  });

  it('raises its own error classes', async () => {
    const plan = [429, 500, 529];
    await open({
      faults: { onCall: (_, number) => (plan[number] === undefined ? null : { status: plan[number] }) },
    });
    const create = (messages: Anthropic.MessageParam[]) =>
      rejection(clients.anthropic.messages.create({ ...ask, messages }));
    const limited = await create([hi]);
    expect(limited).toBeInstanceOf(Anthropic.RateLimitError);
    expect(limited).toMatchObject({ status: 429, error: { error: { type: 'rate_limit_error' } } });
    const internal = await create([hi]);
    expect(internal).toBeInstanceOf(Anthropic.InternalServerError);
    expect(internal).toMatchObject({ status: 500, error: { error: { type: 'api_error' } } });
    const overloaded = await create([hi]);
    expect(overloaded).toBeInstanceOf(Anthropic.InternalServerError);
    expect(overloaded).toMatchObject({ status: 529, error: { error: { type: 'overloaded_error' } } });

    const data = Buffer.from('png').toString('base64');
    const image = {
      type: 'image' as const,
      source: { type: 'base64' as const, media_type: 'image/png' as const, data },
    };
    const seen = await create([
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x', content: [image] }] },
    ]);
    expect(seen).toBeInstanceOf(Anthropic.BadRequestError);
    expect(seen).toMatchObject({ error: { error: { type: 'invalid_request_error' } } });
    expect((seen as Error).message).toContain('messages.0.content.0.content.0: this policy reads text only');

    const unknown = await rejection(clients.anthropic.post('/v1/nothing'));
    expect(unknown).toBeInstanceOf(Anthropic.NotFoundError);
    expect(unknown).toMatchObject({ error: { error: { type: 'not_found_error' } } });
    const large = await create([{ role: 'user', content: 'x'.repeat(17 * 2 ** 20) }]);
    expect(large).toMatchObject({ status: 413, error: { error: { type: 'request_too_large' } } });

    const strangers = await officialClients(rollout, 'sk-other');
    const refused = await rejection(strangers.anthropic.messages.create({ ...ask, messages: [hi] }));
    expect(refused).toBeInstanceOf(Anthropic.AuthenticationError);
    expect(await rejection(strangers.anthropic.models.list())).toMatchObject({
      error: { error: { type: 'authentication_error' } },
    });
    await strangers.close();
  });

  it('is told of a prompt over the window by a status, streaming or not', async () => {
    await open();
    say([[text('x')]]);
    await clients.anthropic.messages.create({ ...ask, messages: [hi] });
    test.engine.down = 'ENGINE_E_CONTEXT';
    for (const stream of [false, true]) {
      const error = await rejection(clients.anthropic.messages.create({ ...ask, stream, messages: [hi] }));
      expect(error).toBeInstanceOf(Anthropic.BadRequestError);
      expect((error as Error).message).toMatch(/prompt is too long: \d+ tokens > 100000 maximum/);
    }
  });

  it('raises an error that comes after the stream was opened', async () => {
    await open({ openAfterMs: 5, keepAliveMs: 5, engineRetryMs: 200 });
    say([[text('x')]]);
    await clients.anthropic.messages.create({ ...ask, messages: [hi] });
    test.engine.down = 'RPC_E_UNREACHABLE';
    const error = await rejection(
      clients.anthropic.messages.stream({ ...ask, messages: [hi] }).finalMessage(),
    );
    expect(error).toBeInstanceOf(Anthropic.APIError);
    expect((error as Error).message).toContain('overloaded_error');
  });

  it('leaves, and the record says that it was the client', async () => {
    await open();
    let release = (): void => undefined;
    test.engine.gate = new Promise((resolve) => (release = resolve));
    const leaving = new AbortController();
    const gone = rejection(
      clients.anthropic.messages.create({ ...ask, messages: [hi] }, { signal: leaving.signal }),
    );
    while (test.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    leaving.abort();
    expect(await gone).toBeInstanceOf(Anthropic.APIUserAbortError);
    await new Promise((resolve) => setTimeout(resolve, 100));
    say([[text('late')]]);
    release();
    expect(await ends()).toMatchObject([
      { cause: 'client', delivery: 'none', sent: { bytes: 0, events: 0 } },
    ]);
  });
});

describe('openai, chat completions', () => {
  const tools: OpenAI.ChatCompletionTool[] = ['Read', 'Bash'].map((name) => ({
    type: 'function',
    function: { name, parameters: { type: 'object', properties: { path: { type: 'string' } } } },
  }));
  const ask = { model: 'any', tools };
  const hi: OpenAI.ChatCompletionMessageParam = { role: 'user', content: 'hi' };
  const called = (name: string, args: unknown) => ({
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  });
  const expected = {
    role: 'assistant',
    content: ODD,
    tool_calls: [called('Read', { path: 'ä.txt' }), called('Bash', { command: ODD, n: 2 })],
  };

  it('reads a whole reply with several calls', async () => {
    await open();
    say([SEVERAL]);
    const completion = await clients.openai.chat.completions.create({ ...ask, messages: [hi] });
    expect(completion.choices).toMatchObject([{ index: 0, finish_reason: 'tool_calls', message: expected }]);
    const output = saying(SEVERAL).tokens!.length;
    expect(completion.usage).toEqual({
      prompt_tokens: promptTokens(0),
      completion_tokens: output,
      total_tokens: promptTokens(0) + output,
    });
  });

  it('puts the same message together from a stream', async () => {
    await open({ openAfterMs: 5, keepAliveMs: 5 });
    test.engine.delayMs = 100;
    say([SEVERAL]);
    const stream = clients.openai.chat.completions.stream({
      ...ask,
      messages: [hi],
      stream_options: { include_usage: true },
    });
    const completion = await stream.finalChatCompletion();
    expect(completion.choices).toMatchObject([{ finish_reason: 'tool_calls', message: expected }]);
    expect(await stream.totalUsage()).toMatchObject({ prompt_tokens: promptTokens(0) });
  });

  it('gets usage in a stream only if it asks for it', async () => {
    await open();
    say([[text('x')]]);
    const usage = async (include_usage: boolean): Promise<unknown[]> => {
      const stream = await clients.openai.chat.completions.create({
        ...ask,
        messages: [hi],
        stream: true,
        stream_options: { include_usage },
      });
      const told: unknown[] = [];
      for await (const chunk of stream) {
        told.push(chunk.choices.length === 0 ? chunk.usage?.prompt_tokens : chunk.usage);
      }
      return told;
    };
    expect(await usage(true)).toEqual([null, null, null, promptTokens(0)]);
    expect(await usage(false)).toEqual([undefined, undefined, undefined]);
  });

  it('runs its tools over several turns', async () => {
    await open();
    say([[text('looking'), call('Read', { path: 'a' }), call('Read', { path: 'b' })]], [[text('done')]]);
    const read: string[] = [];
    const runner = clients.openai.chat.completions.runTools({
      model: 'any',
      messages: [hi],
      stream: true,
      tools: [
        {
          type: 'function',
          function: {
            name: 'Read',
            description: 'reads',
            parameters: { type: 'object', properties: { path: { type: 'string' } } },
            parse: (args: string) => JSON.parse(args) as { path: string },
            function: ({ path }: { path: string }) => {
              read.push(path);
              return `contents of ${path}`;
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe('done');
    expect(read).toEqual(['a', 'b']);
    expect(await grafts()).toEqual(['root', 'reply']);
  });

  it('says when a reply was cut', async () => {
    await open();
    say([[text('cut')], 'length']);
    const completion = await clients.openai.chat.completions.create({ ...ask, messages: [hi] });
    expect(completion.choices[0]!.finish_reason).toBe('length');
  });

  it('lists models', async () => {
    await open();
    const listed: string[] = [];
    for await (const model of clients.openai.models.list()) listed.push(`${model.object} ${model.id}`);
    expect(listed).toEqual(['model policy']);
    expect(await clients.openai.models.retrieve('org/name')).toMatchObject({
      id: 'org/name',
      object: 'model',
      owned_by: 'treeward',
    });
  });

  it('raises its own error classes', async () => {
    const plan = [429, 500];
    await open({
      faults: { onCall: (_, number) => (plan[number] === undefined ? null : { status: plan[number] }) },
    });
    const create = (more: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming>) =>
      rejection(clients.openai.chat.completions.create({ ...ask, messages: [hi], ...more }));
    const limited = await create({});
    expect(limited).toBeInstanceOf(OpenAI.RateLimitError);
    expect(limited).toMatchObject({ code: 'rate_limit_exceeded' });
    expect(await create({})).toBeInstanceOf(OpenAI.InternalServerError);

    const url = 'data:image/png;base64,AAAA';
    const image = await create({
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    });
    expect(image).toBeInstanceOf(OpenAI.BadRequestError);
    expect(image).toMatchObject({ type: 'invalid_request_error' });
    expect((image as Error).message).toContain('messages.0.content.0: this policy reads text only');
    const several = await create({ n: 2 });
    expect(several).toBeInstanceOf(OpenAI.BadRequestError);
    expect((several as Error).message).toContain('n: only one choice');
    expect(await rejection(clients.openai.embeddings.create({ model: 'any', input: 'x' }))).toBeInstanceOf(
      OpenAI.NotFoundError,
    );
    const large = await create({ messages: [{ role: 'user', content: 'x'.repeat(17 * 2 ** 20) }] });
    expect(large).toMatchObject({ status: 413, type: 'invalid_request_error' });

    const strangers = await officialClients(rollout, 'sk-other');
    const refused = await rejection(strangers.openai.chat.completions.create({ ...ask, messages: [hi] }));
    expect(refused).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(refused).toMatchObject({ code: 'invalid_api_key' });
    expect(await rejection(strangers.openai.models.list())).toMatchObject({ code: 'invalid_api_key' });
    await strangers.close();

    say([[text('x')]]);
    expect(await create({})).toMatchObject({ object: 'chat.completion' });
    test.engine.down = 'ENGINE_E_CONTEXT';
    for (const stream of [false, true]) {
      const long = await rejection(
        clients.openai.chat.completions.create({ ...ask, stream, messages: [hi] }),
      );
      expect(long).toBeInstanceOf(OpenAI.BadRequestError);
      expect(long).toMatchObject({ code: 'context_length_exceeded' });
    }
  });

  it('raises an error that comes after the stream was opened', async () => {
    await open({ openAfterMs: 5, keepAliveMs: 5, engineRetryMs: 200 });
    say([[text('x')]]);
    await clients.openai.chat.completions.create({ ...ask, messages: [hi] });
    test.engine.down = 'RPC_E_UNREACHABLE';
    const stream = clients.openai.chat.completions.stream({ ...ask, messages: [hi] });
    const error = await rejection(stream.finalChatCompletion());
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ type: 'server_error' });
  });
});

describe('openai, responses', () => {
  const tools: OpenAI.Responses.Tool[] = [
    ...['Read', 'Bash'].map((name): OpenAI.Responses.FunctionTool => ({
      type: 'function',
      name,
      strict: false,
      parameters: { type: 'object', properties: { path: { type: 'string' } } },
    })),
    { type: 'custom', name: 'apply_patch', description: 'patches' },
  ];
  const ask = { model: 'any', instructions: 'be good', tools, store: false };
  const expected = [
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: ODD }] },
    { type: 'function_call', name: 'Read', arguments: JSON.stringify({ path: 'ä.txt' }) },
    { type: 'function_call', name: 'Bash', arguments: JSON.stringify({ command: ODD, n: 2 }) },
    { type: 'custom_tool_call', name: 'apply_patch', input: ODD },
  ];
  const parts = [...SEVERAL, call('apply_patch', { input: ODD })];

  it('reads a whole reply with several calls', async () => {
    await open();
    say([parts]);
    const response = await clients.openai.responses.create({ ...ask, input: 'hi' });
    expect(response).toMatchObject({ object: 'response', status: 'completed', error: null, model: 'any' });
    expect(response.output).toMatchObject(expected);
    expect(response.output_text).toBe(ODD);
    const output = saying(parts).tokens!.length;
    expect(response.usage).toMatchObject({
      input_tokens: promptTokens(0),
      output_tokens: output,
      total_tokens: promptTokens(0) + output,
    });
  });

  it('puts the same response together from a stream', async () => {
    await open({ openAfterMs: 5, keepAliveMs: 5 });
    test.engine.delayMs = 100;
    say([parts]);
    const heard: string[] = [];
    const response = await clients.openai.responses
      .stream({ ...ask, input: 'hi' })
      .on('response.output_text.delta', ({ delta }) => heard.push(delta))
      .finalResponse();
    expect(response.status).toBe('completed');
    expect(response.output).toMatchObject(expected);
    expect(response.usage!.input_tokens).toBe(promptTokens(0));
    expect(heard.join('')).toBe(ODD);
  });

  it('sends a streamed turn back as history that continues the conversation', async () => {
    await open();
    say([parts], [[text('done')]]);
    const hi = { role: 'user' as const, content: 'hi' };
    const { output } = await clients.openai.responses.stream({ ...ask, input: [hi] }).finalResponse();
    const input: OpenAI.Responses.ResponseInputItem[] = [hi];
    for (const item of output) {
      // The helper adds what it parsed; that is no part of an input item.
      const { parsed_arguments: _, ...plain } = item as typeof item & { parsed_arguments?: unknown };
      input.push(plain as OpenAI.Responses.ResponseInputItem);
    }
    for (const item of output) {
      if (item.type === 'function_call') {
        input.push({ type: 'function_call_output', call_id: item.call_id, output: 'ok' });
      }
      if (item.type === 'custom_tool_call') {
        const content = [{ type: 'input_text' as const, text: 'ok' }];
        input.push({ type: 'custom_tool_call_output', call_id: item.call_id, output: content });
      }
    }
    const next = await clients.openai.responses.create({ ...ask, input });
    expect(next.output_text).toBe('done');
    expect(await grafts()).toEqual(['root', 'reply']);
  });

  it('says when a reply was cut', async () => {
    await open();
    say([[text('cut')], 'length']);
    const whole = await clients.openai.responses.create({ ...ask, input: 'hi' });
    const streamed = await clients.openai.responses.stream({ ...ask, input: 'hi' }).finalResponse();
    for (const { status, incomplete_details, output_text } of [whole, streamed]) {
      expect(status).toBe('incomplete');
      expect(incomplete_details).toEqual({ reason: 'max_output_tokens' });
      expect(output_text).toBe('cut');
    }
  });

  it('counts tokens', async () => {
    await open();
    say([[text('x')]]);
    const { instructions } = ask;
    const counted = await clients.openai.responses.inputTokens.count({
      model: 'any',
      instructions,
      tools,
      input: 'hi',
    });
    await clients.openai.responses.create({ ...ask, input: 'hi' });
    expect(counted).toEqual({ object: 'response.input_tokens', input_tokens: promptTokens(0) });
  });

  it('raises its own error classes', async () => {
    const plan = [429, 500];
    await open({
      faults: { onCall: (_, number) => (plan[number] === undefined ? null : { status: plan[number] }) },
    });
    const create = (more: Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>) =>
      rejection(clients.openai.responses.create({ ...ask, input: 'hi', ...more }));
    expect(await create({})).toBeInstanceOf(OpenAI.RateLimitError);
    expect(await create({})).toBeInstanceOf(OpenAI.InternalServerError);
    const continued = await create({ previous_response_id: 'resp_1' });
    expect(continued).toBeInstanceOf(OpenAI.BadRequestError);
    expect((continued as Error).message).toContain('previous_response_id: no responses are kept here');
    const image_url = 'data:image/png;base64,AAAA';
    const image = await create({
      input: [{ role: 'user', content: [{ type: 'input_image', image_url, detail: 'auto' }] }],
    });
    expect(image).toBeInstanceOf(OpenAI.BadRequestError);
    expect((image as Error).message).toContain('input.0.content.0: this policy reads text only');
    say([[text('x')]]);
    expect(await create({})).toMatchObject({ object: 'response' });
    test.engine.down = 'ENGINE_E_CONTEXT';
    const long = await create({});
    expect(long).toBeInstanceOf(OpenAI.BadRequestError);
    expect(long).toMatchObject({ code: 'context_length_exceeded' });
    const strangers = await officialClients(rollout, 'sk-other');
    expect(await rejection(strangers.openai.responses.create({ ...ask, input: 'hi' }))).toBeInstanceOf(
      OpenAI.AuthenticationError,
    );
    await strangers.close();
  });

  it('is told of a prompt over the window, and of a late fault, by a failed response in the stream', async () => {
    await open({ openAfterMs: 5, keepAliveMs: 5, engineRetryMs: 200 });
    say([[text('x')]]);
    await clients.openai.responses.create({ ...ask, input: 'hi' });
    const streamed = () => clients.openai.responses.stream({ ...ask, input: 'hi' }).finalResponse();
    test.engine.down = 'ENGINE_E_CONTEXT';
    expect(await streamed()).toMatchObject({
      status: 'failed',
      error: { code: 'context_length_exceeded' },
      output: [],
    });
    test.engine.down = 'RPC_E_UNREACHABLE';
    expect(await streamed()).toMatchObject({ status: 'failed', error: { code: 'server_is_overloaded' } });
    expect((await ends()).map(({ cause, status }) => [cause, status])).toEqual([
      ['done', 200],
      ['done', 400],
      ['engine', 503],
    ]);
  });
});
