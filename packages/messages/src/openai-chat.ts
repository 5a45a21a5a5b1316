import { parseOpenaiChat } from './openai-parse.js';
import { textPieces } from './sse.js';
import type { Dialect, Reply, ServerEvent, Usage } from './types.js';

const ERROR_TYPE: Record<number, { type: string; code: string | null }> = {
  401: { type: 'invalid_request_error', code: 'invalid_api_key' },
  429: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
};

const FINISH = { stop: 'stop', tool_calls: 'tool_calls', length: 'length' } as const;

const usage = ({ promptTokens, completionTokens }: Usage): Record<string, number> => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
});

const now = (): number => Math.floor(Date.now() / 1000);

type Meta = Pick<Reply, 'id' | 'model'>;

function chunk({ id, model }: Meta, choices: unknown[], extra: Record<string, unknown> = {}): ServerEvent {
  return {
    data: JSON.stringify({ id, object: 'chat.completion.chunk', created: now(), model, choices, ...extra }),
  };
}

const delta = (meta: Meta, value: Record<string, unknown>, finish: string | null = null): ServerEvent =>
  chunk(meta, [{ index: 0, delta: value, finish_reason: finish }]);

const error = (status: number, message: string, code: string | null = null): unknown => {
  const known = ERROR_TYPE[status] ?? {
    type: status < 500 ? 'invalid_request_error' : 'server_error',
    code: null,
  };
  return { error: { message, type: known.type, param: null, code: code ?? known.code } };
};

const textOf = (reply: Reply): string =>
  reply.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');

const callsOf = (reply: Reply): { id: string; name: string; text: string }[] =>
  reply.parts.flatMap((part) =>
    part.type === 'tool_call' ? [{ id: part.id, name: part.name, text: JSON.stringify(part.arguments) }] : [],
  );

function callEvents(reply: Reply): ServerEvent[] {
  return callsOf(reply).flatMap(({ id, name, text }, index) => [
    delta(reply, { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    ...textPieces(text).map((piece) =>
      delta(reply, { tool_calls: [{ index, function: { arguments: piece } }] }),
    ),
  ]);
}

/** OpenAI Chat Completions. This dialect cannot say text between or after calls: all text comes first. */
export const openaiChat: Dialect = {
  name: 'openai-chat',
  path: '/v1/chat/completions',
  overloadedStatus: 500,
  keepAlive: 'keep-alive',
  parse: parseOpenaiChat,

  render(reply) {
    const calls = callsOf(reply);
    const text = textOf(reply);
    return {
      id: reply.id,
      object: 'chat.completion',
      created: now(),
      model: reply.model,
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: text === '' && calls.length > 0 ? null : text,
            refusal: null,
            ...(calls.length > 0 && {
              tool_calls: calls.map(({ id, name, text: args }) => ({
                id,
                type: 'function',
                function: { name, arguments: args },
              })),
            }),
          },
          logprobs: null,
          finish_reason: FINISH[reply.stop],
        },
      ],
      usage: usage(reply.usage),
    };
  },

  opening: (meta) => [delta(meta, { role: 'assistant', content: '' })],

  events: (reply) => [
    ...textPieces(textOf(reply)).map((content) => delta(reply, { content })),
    ...callEvents(reply),
    delta(reply, {}, FINISH[reply.stop]),
    chunk(reply, [], { usage: usage(reply.usage) }),
    { data: '[DONE]' },
  ],

  error,
  contextExceeded: (promptTokens, maximum) =>
    error(
      400,
      `This model's maximum context length is ${maximum} tokens. However, your messages resulted in ` +
        `${promptTokens} tokens. Please reduce the length of the messages.`,
      'context_length_exceeded',
    ),
  errorEvents: (status, message) => [{ data: JSON.stringify(error(status, message)) }],
};
