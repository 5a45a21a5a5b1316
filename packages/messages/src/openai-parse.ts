import { z } from 'zod';
import {
  argumentsOf,
  blockPath,
  blocksOf,
  blockText,
  contentSchema,
  contentText,
  isContent,
  isNullish,
  isObjects,
  noteUnknown,
  nullishBoolean,
  nullishNumber,
  nullishObject,
  nullishObjects,
  nullishString,
  nullishStrings,
  objectOf,
  parametersOf,
  parseBody,
  samplingOf,
  stringOf,
  unreadable,
  type Content,
} from './lenient.js';
import type { CanonicalRequest, Message, ReplyPart, ToolSpec } from './types.js';

const functionSchema = z.looseObject({ name: z.string().nullish(), arguments: z.unknown().optional() });

const messageSchema = z.looseObject({
  role: z.string(),
  content: contentSchema,
  tool_calls: z
    .array(z.looseObject({ id: z.string().nullish(), function: functionSchema.nullish() }))
    .nullish(),
  function_call: functionSchema.nullish(),
  tool_call_id: z.string().nullish(),
});

export const openaiChatSchema = z.looseObject({
  model: z.string().nullish(),
  messages: z.array(messageSchema),
  tools: z.array(z.looseObject({})).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.literal(1, { error: 'only one choice per request is served' }).nullish(),
  max_tokens: z.number().nullish(),
  max_completion_tokens: z.number().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: z.number().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
});

const acceptsFunction = ({ name }: Record<string, unknown>): boolean => nullishString(name);

const acceptsMessage = (message: Record<string, unknown>): boolean =>
  typeof message['role'] === 'string' &&
  isContent(message['content']) &&
  nullishObjects(
    message['tool_calls'],
    (call) => nullishString(call['id']) && nullishObject(call['function'], acceptsFunction),
  ) &&
  nullishObject(message['function_call'], acceptsFunction) &&
  nullishString(message['tool_call_id']);

/** `openaiChatSchema` by hand. */
export const acceptsOpenaiChat = (body: Record<string, unknown>): boolean =>
  nullishString(body['model']) &&
  isObjects(body['messages'], acceptsMessage) &&
  nullishObjects(body['tools']) &&
  nullishBoolean(body['stream']) &&
  nullishObject(body['stream_options'], (options) => nullishBoolean(options['include_usage'])) &&
  (isNullish(body['n']) || body['n'] === 1) &&
  nullishNumber(body['max_tokens']) &&
  nullishNumber(body['max_completion_tokens']) &&
  nullishNumber(body['temperature']) &&
  nullishNumber(body['top_p']) &&
  nullishNumber(body['top_k']) &&
  (typeof body['stop'] === 'string' || nullishStrings(body['stop']));

const KNOWN = new Set(
  (
    'model messages tools tool_choice parallel_tool_calls stream stream_options n max_tokens max_completion_tokens ' +
    'temperature top_p top_k stop seed user metadata store reasoning_effort verbosity response_format service_tier ' +
    'frequency_penalty presence_penalty logit_bias logprobs top_logprobs prompt_cache_key prompt_cache_retention ' +
    'safety_identifier'
  ).split(' '),
);

/** Body of `POST /v1/chat/completions` to the canonical request. */
export function parseOpenaiChat(body: unknown): CanonicalRequest {
  const parsed = parseBody(openaiChatSchema, acceptsOpenaiChat, body);
  const unknown = new Set<string>();
  noteUnknown(parsed, KNOWN, unknown);
  return {
    dialect: 'openai-chat',
    model: parsed.model ?? '',
    stream: parsed.stream ?? false,
    tools: (parsed.tools ?? []).flatMap((tool) => toolSpec(tool, unknown)),
    messages: parsed.messages.map((message, index) => messageOf(message, `messages.${index}`, unknown)),
    requested: samplingOf({
      temperature: parsed.temperature,
      topP: parsed.top_p,
      topK: parsed.top_k,
      maxTokens: parsed.max_completion_tokens ?? parsed.max_tokens,
      stop: typeof parsed.stop === 'string' ? [parsed.stop] : parsed.stop,
      effort: stringOf(parsed['reasoning_effort']),
    }),
    form: { streamUsage: parsed.stream_options?.include_usage === true },
    unknown: [...unknown].sort(),
  };
}

function messageOf(message: z.infer<typeof messageSchema>, field: string, unknown: Set<string>): Message {
  const where = `${field}.content`;
  switch (message.role) {
    case 'system':
    case 'developer':
      return { role: 'system', text: contentText(message.content, where, unknown) };
    case 'user':
      return { role: 'user', text: contentText(message.content, where, unknown) };
    case 'tool':
    case 'function':
      return {
        role: 'tool',
        callId: message.tool_call_id ?? '',
        text: contentText(message.content, where, unknown),
      };
    case 'assistant':
      return { role: 'assistant', parts: [...texts(message.content, where, unknown), ...calls(message)] };
    default:
      throw unreadable(
        `${field}.role`,
        `expected system, developer, user, assistant or tool, got "${message.role}"`,
      );
  }
}

function texts(content: Content, where: string, unknown: Set<string>): ReplyPart[] {
  return blocksOf(content).flatMap((block, index): ReplyPart[] => {
    if (block.type === 'thinking' || block.type === 'reasoning') return [];
    const text = blockText(block, blockPath(content, where, index), unknown);
    return text === null ? [] : [{ type: 'text', text }];
  });
}

function calls(message: z.infer<typeof messageSchema>): ReplyPart[] {
  const listed = (message.tool_calls ?? []).map(({ id, function: called }) => ({ id, called }));
  const legacy = message.function_call ? [{ id: '', called: message.function_call }] : [];
  return [...listed, ...legacy].map(({ id, called }) => ({
    type: 'tool_call',
    id: id ?? '',
    name: called?.name ?? '',
    arguments: argumentsOf(called?.arguments),
  }));
}

function toolSpec(tool: Record<string, unknown>, unknown: Set<string>): ToolSpec[] {
  const called = objectOf(tool['function']);
  if (!called || typeof called['name'] !== 'string') {
    unknown.add(`tool ${typeof tool['type'] === 'string' ? tool['type'] : 'without function'}`);
    return [];
  }
  const { name, description, parameters } = called;
  return [{ name: name as string, description: stringOf(description), parameters: parametersOf(parameters) }];
}
