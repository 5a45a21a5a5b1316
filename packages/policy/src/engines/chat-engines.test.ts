import type { Server } from 'node:http';
import type { ReplyPart } from '@treeward/messages';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEngine } from '../engine-config.js';
import { chatConformance, type ChatEngineUnderTest } from '../testing/engine-conformance.js';
import { serveAnswers, type Answer, type Seen } from '../testing/protocol-server.js';
import type { Engine } from '../types.js';

const SECRET = 'sk-test-7f3a9c';
const KEY = 'TREEWARD_TEST_UPSTREAM_KEY';

let url: string;
let server: Server;
let seen: Seen[];
let answers: Answer[];
const engines: Partial<Record<'openai' | 'anthropic', Engine>> = {};
let openaiUrl = '';
beforeAll(async () => {
  process.env[KEY] = SECRET;
  ({ url, server, seen, answers } = await serveAnswers());
  const upstream = { model: 'm', apiKeyEnv: KEY, timeout: 300, retries: 2 };
  openaiUrl = `${url}/v1`;
  engines.openai = await createEngine({
    ...upstream,
    kind: 'openai-compatible',
    mode: 'chat',
    baseUrl: `${url}/v1`,
  });
  engines.anthropic = await createEngine({ ...upstream, kind: 'anthropic', baseUrl: url });
});
afterAll(() => {
  delete process.env[KEY];
  server.closeAllConnections();
  server.close();
});

const textOf = (parts: readonly ReplyPart[]): string =>
  parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');

type Render = (parts: readonly ReplyPart[], finish: 'stop' | 'length') => unknown;

const openAiReply: Render = (parts, finish) => ({
  id: 'x',
  object: 'chat.completion',
  model: 'model-that-answered',
  choices: [
    {
      index: 0,
      finish_reason: finish,
      message: {
        role: 'assistant',
        content: textOf(parts) || null,
        tool_calls: parts.flatMap((part) =>
          part.type === 'tool_call'
            ? [
                {
                  id: part.id,
                  type: 'function',
                  function: { name: part.name, arguments: JSON.stringify(part.arguments) },
                },
              ]
            : [],
        ),
      },
    },
  ],
  usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
});

const anthropicReply: Render = (parts, finish) => ({
  id: 'x',
  type: 'message',
  role: 'assistant',
  model: 'model-that-answered',
  content: parts.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'tool_use', id: part.id, name: part.name, input: part.arguments },
  ),
  stop_reason: finish === 'length' ? 'max_tokens' : 'end_turn',
  usage: { input_tokens: 11, output_tokens: 7 },
});

const under = (kind: 'openai' | 'anthropic', render: Render): ChatEngineUnderTest => {
  const set = (...next: Answer[]): void => {
    seen.length = 0;
    answers.splice(0, answers.length, ...next);
  };
  return {
    engine: () => engines[kind]!,
    secret: SECRET,
    calls: () => seen.length,
    reply: (parts, finish) => set({ status: 200, body: render(parts, finish) }),
    fault: (fault, message = '', thenReply = false) => {
      const failed: Answer =
        typeof fault === 'number'
          ? { status: fault, body: { type: 'error', error: { type: 'fault', message } } }
          : fault;
      const ok: Answer = { status: 200, body: render([{ type: 'text', text: 'ok' }], 'stop') };
      set(failed, ...(thenReply ? [ok] : []));
    },
  };
};

const openai = under('openai', openAiReply);
const anthropic = under('anthropic', anthropicReply);
chatConformance('openai-compatible, chat', openai);
chatConformance('anthropic', anthropic);

const messages = [
  { role: 'system', text: 'S' },
  { role: 'user', text: 'U' },
  { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'f', arguments: { a: 1 } }] },
  { role: 'tool', callId: 'c1', text: 'R', isError: true },
  { role: 'system', text: 'note' },
] as const;
const request = {
  messages: messages.map((message) => ({ ...message })) as never,
  tools: [{ name: 'f', description: 'd', parameters: { type: 'object' } }],
  sampling: { temperature: 0, topP: 0.9, maxTokens: 5, stop: ['x'], effort: 'minimal' },
  tag: 't',
};

describe('what is sent', () => {
  it('openai-compatible: the conversation in its protocol, with the key', async () => {
    openai.reply([], 'stop');
    await engines.openai!.chat!(request);
    expect(seen[0]).toMatchObject({
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${SECRET}` },
    });
    expect(seen[0]!.body).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'S' },
        { role: 'user', content: 'U' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'R' },
        { role: 'system', content: 'note' },
      ],
      tools: [
        { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } },
      ],
      temperature: 0,
      top_p: 0.9,
      max_tokens: 5,
      stop: ['x'],
      reasoning_effort: 'minimal',
    });
  });

  it.each([
    [false, request.sampling],
    [true, undefined],
  ])(
    'openai-compatible: top-k where it is taken (%s), and the reply says if it was left out',
    async (topK, told) => {
      const engine = await createEngine({
        model: 'm',
        apiKeyEnv: KEY,
        kind: 'openai-compatible',
        mode: 'chat',
        baseUrl: openaiUrl,
        topK,
      });
      openai.reply([], 'stop');
      const sampling = { ...request.sampling, topK: 7 };
      const reply = await engine.chat!({ ...request, sampling });
      expect((seen[0]!.body as Record<string, unknown>)['top_k']).toBe(topK ? 7 : undefined);
      expect(reply.sampling).toEqual(told);
    },
  );

  it('anthropic: system apart, neighbours of one side in one turn', async () => {
    anthropic.reply([], 'stop');
    await engines.anthropic!.chat!(request);
    expect(seen[0]).toMatchObject({ path: '/v1/messages', headers: { authorization: `Bearer ${SECRET}` } });
    expect(seen[0]!.body).toEqual({
      model: 'm',
      system: 'S',
      max_tokens: 5,
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'U' }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: { a: 1 } }] },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'c1', content: 'R', is_error: true },
            { type: 'text', text: 'note' },
          ],
        },
      ],
      tools: [{ name: 'f', description: 'd', input_schema: { type: 'object' } }],
      temperature: 0,
      top_p: 0.9,
      stop_sequences: ['x'],
      output_config: { effort: 'low' }, // the least that it knows
    });
  });

  it('gives arguments that are no object back as the text that they are', async () => {
    const deep = `{"a": ${'['.repeat(6000)}${']'.repeat(6000)}}`;
    for (const args of ['{"a": ', '[]', deep]) {
      const call = { id: 'c', type: 'function', function: { name: 'f', arguments: args } };
      answers.splice(0, answers.length, {
        status: 200,
        body: {
          model: 'm',
          choices: [{ finish_reason: 'stop', message: { content: '', tool_calls: [call] } }],
        },
      });
      const reply = await engines.openai!.chat!(request);
      expect(reply.parts).toEqual([{ type: 'text', text: `f(${args})` }]);
    }
  });

  it('names what is missing in an answer', async () => {
    answers.splice(0, answers.length, { status: 200, body: { model: 'm' } });
    await expect(engines.openai!.chat!(request)).rejects.toMatchObject({
      code: 'ENGINE_E_REPLY',
      data: { field: 'choices[0].message' },
    });
    await expect(engines.anthropic!.chat!(request)).rejects.toMatchObject({ data: { field: 'content' } });
  });
});
