import { TreewardError } from '@treeward/base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalKey } from './canonical.js';
import { countingDialectForPath, dialectForPath, dialectOfClient, dialects } from './dialects.js';
import { encodeServerEvent, textPieces } from './sse.js';
import { reply as anyReply } from './testing/arbitraries.js';
import type { Message, Reply, ServerEvent } from './types.js';

const { 'anthropic-messages': anthropic, 'openai-chat': openai, 'openai-responses': responses } = dialects;

const keyOf = (reply: Reply): string => canonicalKey({ role: 'assistant', parts: reply.parts });
const payload = (event: ServerEvent): any => JSON.parse(event.data); // eslint-disable-line @typescript-eslint/no-explicit-any
const code = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    return TreewardError.isInstance(error) ? error.code : String(error);
  }
  return 'nothing thrown';
};

/** What a client of the dialect puts together from the stream, as the message it sends back next time. */
function assembleAnthropic(events: ServerEvent[]): Record<string, unknown> {
  const blocks: Record<string, unknown>[] = [];
  const json: string[] = [];
  for (const { type, index, content_block, delta } of events.map(payload)) {
    if (type === 'content_block_start') {
      expect(index).toBe(blocks.length);
      blocks.push({ ...content_block });
      json.push('');
    }
    if (type === 'content_block_delta') {
      if (delta.type === 'text_delta') blocks[index]!['text'] += delta.text;
      else json[index] += delta.partial_json;
    }
    if (type === 'content_block_stop' && blocks[index]!['type'] === 'tool_use') {
      blocks[index]!['input'] = JSON.parse(json[index]!);
    }
  }
  return { role: 'assistant', content: blocks };
}

function assembleOpenai(events: ServerEvent[]): Record<string, unknown> {
  const message = { role: '', content: '', tool_calls: [] as Record<string, any>[] }; // eslint-disable-line @typescript-eslint/no-explicit-any
  for (const event of events) {
    if (event.data === '[DONE]') continue;
    for (const { delta } of payload(event).choices) {
      message.role += delta.role ?? '';
      message.content += delta.content ?? '';
      for (const { index, function: called, ...rest } of delta.tool_calls ?? []) {
        const known = message.tool_calls[index];
        if (known) known['function'].arguments += called.arguments;
        else message.tool_calls[index] = { ...rest, function: { ...called } };
      }
    }
  }
  return message;
}

/** The items of a stream, as a client sends them back. */
const assembleResponses = (events: ServerEvent[]): unknown[] =>
  events
    .map(payload)
    .filter(({ type }) => type === 'response.output_item.done')
    .map(({ item }) => item);

const parsedItems = (items: unknown[]): Message => {
  const { messages } = responses.parse({ input: items });
  expect(messages).toHaveLength(1);
  return messages[0]!;
};

const parsedBack = (dialect: typeof anthropic, message: unknown): Message =>
  dialect.parse({ messages: [message] }).messages.at(-1)!;

describe('a reply that comes back as history', () => {
  it('is the same turn, whole or streamed, in every dialect', () => {
    fc.assert(
      fc.property(anyReply, (reply) => {
        const meta = { id: reply.id, model: reply.model, promptTokens: reply.usage.promptTokens };
        const returned = [
          parsedBack(anthropic, { role: 'assistant', content: (anthropic.render(reply) as any).content }), // eslint-disable-line @typescript-eslint/no-explicit-any
          parsedBack(anthropic, assembleAnthropic([...anthropic.opening(meta), ...anthropic.events(reply)])),
          parsedBack(openai, (openai.render(reply) as any).choices[0].message), // eslint-disable-line @typescript-eslint/no-explicit-any
          parsedBack(openai, assembleOpenai([...openai.opening(meta), ...openai.events(reply)])),
          parsedItems((responses.render(reply) as any).output), // eslint-disable-line @typescript-eslint/no-explicit-any
          parsedItems(assembleResponses(responses.events(reply))),
        ];
        for (const message of returned) expect(canonicalKey(message)).toBe(keyOf(reply));
      }),
    );
  });
});

describe('the stream', () => {
  it('has the life cycle of Anthropic Messages', () => {
    fc.assert(
      fc.property(anyReply, (reply) => {
        const events = [
          ...anthropic.opening({ id: 'm', model: 'p', promptTokens: 3 }),
          ...anthropic.events(reply),
        ];
        for (const { event, data } of events) expect(JSON.parse(data).type).toBe(event);
        const order = events.map(({ event }) => event!.replace('content_block_', '')).join(' ');
        expect(order).toMatch(/^message_start ping( start( delta)* stop)* message_delta message_stop$/);
        const { delta, usage } = payload(events.at(-2)!);
        expect(delta.stop_reason).toBe(
          { stop: 'end_turn', tool_calls: 'tool_use', length: 'max_tokens' }[reply.stop],
        );
        expect(usage).toMatchObject({
          input_tokens: reply.usage.promptTokens,
          output_tokens: reply.usage.completionTokens,
        });
      }),
    );
  });

  it('has the life cycle of Chat Completions', () => {
    fc.assert(
      fc.property(anyReply, (reply) => {
        const events = [...openai.opening({ id: 'm', model: 'p', promptTokens: 3 }), ...openai.events(reply)];
        expect(events.at(-1)!.data).toBe('[DONE]');
        const chunks = events.slice(0, -1).map(payload);
        const order = chunks.map(({ choices, usage }) => {
          if (choices.length === 0) return usage ? 'usage' : '?';
          const { delta, finish_reason } = choices[0];
          if (finish_reason) return finish_reason === reply.stop ? 'finish' : '?';
          return delta.role ? 'role' : delta.tool_calls ? 'call' : 'text';
        });
        expect(order.join(' ')).toMatch(/^role( text)*( call)* finish usage$/);
        expect(chunks.at(-1).usage.total_tokens).toBe(
          reply.usage.promptTokens + reply.usage.completionTokens,
        );
      }),
    );
  });

  it('is encoded so that a client gets the same data', () => {
    expect(encodeServerEvent({ event: 'ping', data: '{"a":"\\n"}' })).toBe(
      'event: ping\ndata: {"a":"\\n"}\n\n',
    );
    expect(encodeServerEvent({ data: '[DONE]' })).toBe('data: [DONE]\n\n');
    expect(encodeServerEvent('keep-alive')).toBe(': keep-alive\n\n');
  });

  it('cuts text without splitting a surrogate pair', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 2, max: 5 }), (text, size) => {
        const pieces = textPieces(text, size);
        expect(pieces.join('')).toBe(text);
        for (const piece of pieces) {
          expect(piece.length).toBeGreaterThan(0);
          expect(piece.length).toBeLessThanOrEqual(size);
          expect(piece).not.toMatch(/[\ud800-\udbff]$/);
        }
      }),
    );
  });
});

describe('Anthropic Messages, parsed', () => {
  const parse = (body: Record<string, unknown>) => anthropic.parse(body);

  it('takes strings and blocks alike, cache marks or not', () => {
    const blocks = parse({
      system: [
        { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
        { type: 'text', text: 'b' },
      ],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control: {} }] }],
    });
    const strings = parse({ system: 'a\nb', messages: [{ role: 'user', content: 'hi' }] });
    expect(blocks).toEqual(strings);
    expect(strings.messages).toEqual([
      { role: 'system', text: 'a\nb' },
      { role: 'user', text: 'hi' },
    ]);
  });

  it('spreads tool results and text of one user message, takes system anywhere, drops thinking', () => {
    const { messages, unknown } = parse({
      messages: [
        { role: 'user', content: 'go' },
        { role: 'system', content: [{ type: 'text', text: 'reminder' }] },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 's' },
            { type: 'redacted_thinking', data: 'x' },
            { type: 'text', text: 'ok' },
            { type: 'tool_use', id: 't1', name: 'Read', input: { file_path: 'a' } },
            { type: 'tool_use', id: 't2', name: 'List', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: 'A' }] },
            { type: 'tool_result', tool_use_id: 't2', content: 'B', is_error: true },
            { type: 'text', text: 'note' },
            { type: 'novel', data: 1 },
          ],
        },
      ],
    });
    expect(messages).toEqual([
      { role: 'user', text: 'go' },
      { role: 'system', text: 'reminder' },
      {
        role: 'assistant',
        parts: [
          { type: 'text', text: 'ok' },
          { type: 'tool_call', id: 't1', name: 'Read', arguments: { file_path: 'a' } },
          { type: 'tool_call', id: 't2', name: 'List', arguments: {} },
        ],
      },
      { role: 'tool', callId: 't1', text: 'A' },
      { role: 'tool', callId: 't2', text: 'B', isError: true },
      { role: 'user', text: 'note' },
    ]);
    expect(unknown).toEqual(['block novel']);
  });

  it('tolerates placeholders for deferred tools, new fields, missing content', () => {
    const request = parse({
      model: 'm',
      stream: true,
      max_tokens: 9,
      stop_sequences: ['x'],
      thinking: { type: 'adaptive' },
      context_management: {},
      output_config: { effort: 'low' },
      metadata: { user_id: '{}' },
      brand_new: 1,
      tools: [
        { name: 'Bash', description: 'run', input_schema: { type: 'object' }, defer_loading: false },
        { type: 'tool_search_tool', name: 'ToolSearch' },
        { name: 'later', defer_loading: true },
      ],
      messages: [{ role: 'user', content: null }, { role: 'assistant' }],
    });
    expect(request).toEqual({
      dialect: 'anthropic-messages',
      model: 'm',
      stream: true,
      tools: [{ name: 'Bash', description: 'run', parameters: { type: 'object' } }],
      messages: [
        { role: 'user', text: '' },
        { role: 'assistant', parts: [] },
      ],
      requested: { maxTokens: 9, stop: ['x'], effort: 'low' },
      form: {},
      unknown: ['brand_new', 'tool tool_search_tool', 'tool without schema'],
    });
  });

  it('names what it cannot take', () => {
    expect(code(() => parse({}))).toBe('DIALECT_E_BODY');
    expect(() => parse({ messages: [{ role: 'user', content: 7 }] })).toThrow(/messages\.0\.content/);
    expect(() => parse({ messages: [{ role: 'robot', content: '' }] })).toThrow(/messages\.0\.role.*robot/);
    const image = [{ type: 'image', source: {} }];
    expect(code(() => parse({ messages: [{ role: 'user', content: image }] }))).toBe('DIALECT_E_IMAGE');
    const inResult = [{ type: 'tool_result', tool_use_id: 'a', content: image }];
    expect(code(() => parse({ messages: [{ role: 'user', content: inResult }] }))).toBe('DIALECT_E_IMAGE');
    expect(() => parse({ messages: [{ role: 'user', content: inResult }] })).toThrow(
      /^messages\.0\.content\.0\.content\.0: /,
    );
    const document = [{ type: 'document', source: { type: 'base64', data: '' } }];
    expect(code(() => parse({ messages: [{ role: 'user', content: document }] }))).toBe('DIALECT_E_FILE');
    expect(() => parse({ system: document, messages: [] })).toThrow(/^system\.0: .*document/);
  });
});

describe('Chat Completions, parsed', () => {
  const parse = (body: Record<string, unknown>) => openai.parse(body);

  it('takes developer messages, null content, calls, results as string or parts', () => {
    const call = (id: string, args: string) => ({
      id,
      type: 'function',
      function: { name: 'exec', arguments: args },
    });
    const { messages, requested, tools } = parse({
      max_completion_tokens: 5,
      max_tokens: 6,
      stop: 'x',
      tools: [{ type: 'function', function: { name: 'exec' } }, { type: 'custom' }],
      messages: [
        { role: 'developer', content: 'd' },
        { role: 'user', content: [{ type: 'text', text: 'u' }] },
        { role: 'assistant', content: null, tool_calls: [call('1', '{"b":1,"a":2}'), call('2', 'oops')] },
        { role: 'tool', tool_call_id: '1', content: 'r' },
        { role: 'tool', tool_call_id: '2', content: [{ type: 'text', text: 's' }] },
        { role: 'system', content: 'late' },
      ],
    });
    expect(messages).toEqual([
      { role: 'system', text: 'd' },
      { role: 'user', text: 'u' },
      {
        role: 'assistant',
        parts: [
          { type: 'tool_call', id: '1', name: 'exec', arguments: { a: 2, b: 1 } },
          { type: 'tool_call', id: '2', name: 'exec', arguments: { _raw: 'oops' } },
        ],
      },
      { role: 'tool', callId: '1', text: 'r' },
      { role: 'tool', callId: '2', text: 's' },
      { role: 'system', text: 'late' },
    ]);
    expect(requested).toEqual({ maxTokens: 5, stop: ['x'] });
    expect(tools).toEqual([
      { name: 'exec', description: '', parameters: { type: 'object', properties: {} } },
    ]);
  });

  it('names what it cannot take', () => {
    const user = (content: unknown) => ({ messages: [{ role: 'user', content }] });
    expect(code(() => parse(user([{ type: 'image_url', image_url: { url: '' } }])))).toBe('DIALECT_E_IMAGE');
    expect(code(() => parse(user([{ type: 'file', file: {} }])))).toBe('DIALECT_E_FILE');
    expect(code(() => parse(user([{ type: 'input_audio', input_audio: {} }])))).toBe('DIALECT_E_FILE');
    expect(() => parse({ ...user('x'), n: 2 })).toThrow(/^n: only one choice/);
    expect(code(() => parse({ messages: 'x' }))).toBe('DIALECT_E_BODY');
  });
});

describe('errors', () => {
  it('have the shape of the dialect', () => {
    expect(anthropic.error(529, 'm')).toEqual({
      type: 'error',
      error: { type: 'overloaded_error', message: 'm' },
    });
    expect(anthropic.contextExceeded(600, 512)).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 600 tokens > 512 maximum' },
    });
    expect(openai.error(401, 'm')).toEqual({
      error: { message: 'm', type: 'invalid_request_error', param: null, code: 'invalid_api_key' },
    });
    expect(responses.error(500, 'm')).toEqual({
      error: { message: 'm', type: 'server_error', param: null, code: null },
    });
    expect(responses.error(responses.overloadedStatus, 'm')).toMatchObject({
      error: { type: 'server_error', code: 'server_is_overloaded' },
    });
    expect(responses.contextExceeded(600, 512)).toMatchObject({
      error: {
        code: 'context_length_exceeded',
        message: expect.stringContaining('exceeds the context window'),
      },
    });
    expect(openai.contextExceeded(600, 512)).toMatchObject({
      error: {
        code: 'context_length_exceeded',
        message: expect.stringContaining('maximum context length is 512'),
      },
    });
  });
});

describe('dialectForPath', () => {
  it('knows its paths and no other', () => {
    expect(dialectForPath('/v1/messages')).toBe(anthropic);
    expect(dialectForPath('/v1/chat/completions')).toBe(openai);
    expect(dialectForPath('/v1/responses')).toBe(dialects['openai-responses']);
    expect(dialectForPath('/v1/embeddings')).toBeNull();
    expect(countingDialectForPath('/v1/messages/count_tokens')).toBe(anthropic);
    expect(countingDialectForPath('/v1/responses/input_tokens')).toBe(responses);
    expect(countingDialectForPath('/v1/messages')).toBeNull();
  });

  it('tells whose client asks by its path, or else by its headers', () => {
    const version = { 'anthropic-version': '2023-06-01' };
    expect(dialectOfClient('/v1/models?limit=1', version)).toBe(anthropic);
    expect(dialectOfClient('/v1/models', {})).toBe(openai);
    expect(dialectOfClient('/r/other/v1/messages/?beta=true', {})).toBe(anthropic);
    expect(dialectOfClient('/v1/responses', version)).toBe(responses);
  });
});

describe('models', () => {
  it('have the shape of the dialect', () => {
    const time = '1970-01-01T00:00:00Z';
    expect(anthropic.models(null)).toEqual({
      data: [{ type: 'model', id: 'policy', display_name: 'policy', created_at: time }],
      has_more: false,
      first_id: 'policy',
      last_id: 'policy',
    });
    expect(anthropic.models('a/b')).toEqual({
      type: 'model',
      id: 'a/b',
      display_name: 'a/b',
      created_at: time,
    });
    const model = { id: 'policy', object: 'model', created: 0, owned_by: 'treeward' };
    expect(openai.models(null)).toEqual({ object: 'list', data: [model] });
    expect(responses.models('a/b')).toEqual({ ...model, id: 'a/b' });
  });
});
