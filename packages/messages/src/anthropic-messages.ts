import { parseAnthropicMessages } from './anthropic-parse.js';
import { textPieces } from './sse.js';
import type { Dialect, Reply, ServerEvent } from './types.js';

const STOP_REASON = { stop: 'end_turn', tool_calls: 'tool_use', length: 'max_tokens' } as const;

const ERROR_TYPE: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

const event = (data: { type: string } & Record<string, unknown>): ServerEvent => ({
  event: data.type,
  data: JSON.stringify(data),
});

const PING = event({ type: 'ping' });
const MESSAGE_STOP = event({ type: 'message_stop' });

const usage = (promptTokens: number, completionTokens: number): Record<string, number> => ({
  input_tokens: promptTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: completionTokens,
});

type ErrorBody = { type: string } & Record<string, unknown>;

const error = (status: number, message: string): ErrorBody => ({
  type: 'error',
  error: { type: ERROR_TYPE[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'), message },
});

const model = (id: string): unknown => ({
  type: 'model',
  id,
  display_name: id,
  created_at: '1970-01-01T00:00:00Z',
});

function contentEvents(reply: Reply): ServerEvent[] {
  return reply.parts.flatMap((part, index) => {
    const start =
      part.type === 'text'
        ? { type: 'text', text: '' }
        : { type: 'tool_use', id: part.id, name: part.name, input: {} };
    const deltas =
      part.type === 'text'
        ? textPieces(part.text).map((text) => ({ type: 'text_delta', text }))
        : textPieces(JSON.stringify(part.arguments)).map((partial_json) => ({
            type: 'input_json_delta',
            partial_json,
          }));
    return [
      event({ type: 'content_block_start', index, content_block: start }),
      ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta })),
      event({ type: 'content_block_stop', index }),
    ];
  });
}

/** Anthropic Messages. Nothing is cached here, so the cache counts of `usage` are always 0. */
export const anthropicMessages: Dialect = {
  name: 'anthropic-messages',
  path: '/v1/messages',
  overloadedStatus: 529,
  contextExceededInStream: false,
  counting: { path: '/v1/messages/count_tokens', body: (promptTokens) => ({ input_tokens: promptTokens }) },
  parse: parseAnthropicMessages,

  render: (reply) => ({
    id: reply.id,
    type: 'message',
    role: 'assistant',
    model: reply.model,
    content: reply.parts.map((part) =>
      part.type === 'text'
        ? { type: 'text', text: part.text }
        : { type: 'tool_use', id: part.id, name: part.name, input: part.arguments },
    ),
    stop_reason: STOP_REASON[reply.stop],
    stop_sequence: null,
    usage: usage(reply.usage.promptTokens, reply.usage.completionTokens),
  }),

  opening: ({ id, model, promptTokens }) => [
    event({
      type: 'message_start',
      message: {
        id,
        type: 'message',
        role: 'assistant',
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: usage(promptTokens, 0),
      },
    }),
    PING,
  ],

  keepAlive: () => PING,

  events: (reply) => [
    ...contentEvents(reply),
    event({
      type: 'message_delta',
      delta: { stop_reason: STOP_REASON[reply.stop], stop_sequence: null },
      usage: usage(reply.usage.promptTokens, reply.usage.completionTokens),
    }),
    MESSAGE_STOP,
  ],

  error,
  contextExceeded: (promptTokens, maximum) =>
    error(400, `prompt is too long: ${promptTokens} tokens > ${maximum} maximum`),
  errorEvents: (body) => [event(body as ErrorBody)],

  models: (id) =>
    id === null
      ? { data: [model('policy')], has_more: false, first_id: 'policy', last_id: 'policy' }
      : model(id),
};
