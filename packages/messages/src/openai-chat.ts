import { now, openaiError, openaiModels } from './openai-common.js';
import { parseOpenaiChat } from './openai-parse.js';
import { textPieces } from './sse.js';
import type { Dialect, Reply, ServerEvent, Usage } from './types.js';

const usage = ({ promptTokens, completionTokens }: Usage): Record<string, number> => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
});

type Meta = Pick<Reply, 'id' | 'model' | 'created' | 'form'>;

const tellsUsage = ({ form }: Meta): boolean => form?.streamUsage ?? true;

function chunk(meta: Meta, choices: unknown[], used: Usage | null = null): ServerEvent {
  const { id, model, created = now() } = meta;
  const told = tellsUsage(meta) && { usage: used && usage(used) };
  return { data: JSON.stringify({ id, object: 'chat.completion.chunk', created, model, choices, ...told }) };
}

const delta = (meta: Meta, value: Record<string, unknown>, finish: string | null = null): ServerEvent =>
  chunk(meta, [{ index: 0, delta: value, finish_reason: finish }]);

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
  contextExceededInStream: false,
  parse: parseOpenaiChat,

  render(reply) {
    const calls = callsOf(reply);
    const text = textOf(reply);
    return {
      id: reply.id,
      object: 'chat.completion',
      created: reply.created ?? now(),
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
          finish_reason: reply.stop,
        },
      ],
      usage: usage(reply.usage),
    };
  },

  opening: (meta) => [delta(meta, { role: 'assistant', content: '' })],

  keepAlive: () => 'keep-alive',

  events: (reply) => [
    ...textPieces(textOf(reply)).map((content) => delta(reply, { content })),
    ...callEvents(reply),
    delta(reply, {}, reply.stop),
    ...(tellsUsage(reply) ? [chunk(reply, [], reply.usage)] : []),
    { data: '[DONE]' },
  ],

  error: openaiError,
  contextExceeded: (promptTokens, maximum) =>
    openaiError(
      400,
      `This model's maximum context length is ${maximum} tokens. However, your messages resulted in ` +
        `${promptTokens} tokens. Please reduce the length of the messages.`,
      'context_length_exceeded',
    ),
  errorEvents: (body) => [{ data: JSON.stringify(body) }],
  models: openaiModels,
};
