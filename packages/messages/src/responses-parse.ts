import { z } from 'zod';
import {
  argumentsOf,
  contentText,
  contentTexts,
  isContent,
  isObjects,
  noteUnknown,
  nullishBoolean,
  nullishNumber,
  nullishObjects,
  nullishString,
  objectOf,
  parseBody,
  resultText,
  samplingOf,
  stringOf,
  unreadable,
} from './lenient.js';
import { joinedName, responsesTools } from './responses-tools.js';
import type { CanonicalRequest, Message, ReplyPart, ToolCallPart } from './types.js';

const itemSchema = z.looseObject({ type: z.string().nullish(), role: z.string().nullish() });
type Item = z.infer<typeof itemSchema>;

export const openaiResponsesSchema = z.looseObject({
  model: z.string().nullish(),
  instructions: z.string().nullish(),
  input: z.union([z.string(), z.array(itemSchema)]),
  tools: z.array(z.looseObject({})).nullish(),
  stream: z.boolean().nullish(),
  max_output_tokens: z.number().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
});

/** `openaiResponsesSchema` by hand. */
export const acceptsOpenaiResponses = (body: Record<string, unknown>): boolean =>
  nullishString(body['model']) &&
  nullishString(body['instructions']) &&
  (typeof body['input'] === 'string' ||
    isObjects(body['input'], ({ type, role }) => nullishString(type) && nullishString(role))) &&
  nullishObjects(body['tools']) &&
  nullishBoolean(body['stream']) &&
  nullishNumber(body['max_output_tokens']) &&
  nullishNumber(body['temperature']) &&
  nullishNumber(body['top_p']);

const KNOWN = new Set(
  (
    'model instructions input tools tool_choice parallel_tool_calls stream stream_options max_output_tokens ' +
    'max_tool_calls temperature top_p top_logprobs truncation store include reasoning text metadata client_metadata ' +
    'user safety_identifier prompt_cache_key prompt_cache_retention service_tier background ' +
    'previous_response_id conversation prompt'
  ).split(' '),
);

/** What refers to something that only a server which keeps state could know. */
const STATEFUL: Readonly<Record<string, string>> = {
  previous_response_id: 'no responses are kept here: send the whole conversation in `input`',
  conversation: 'no conversations are kept here: send the whole conversation in `input`',
  prompt: 'no prompts are kept here: send its text in `instructions` or `input`',
};

/** Items that the model's own side said, in a vocabulary that this policy does not speak; nothing is lost without them. */
const DROPPED = new Set(['reasoning']);

/** Body of `POST /v1/responses` to the canonical request. */
export function parseOpenaiResponses(body: unknown): CanonicalRequest {
  const parsed = parseBody(openaiResponsesSchema, acceptsOpenaiResponses, body);
  for (const [field, problem] of Object.entries(STATEFUL)) {
    if (parsed[field] !== null && parsed[field] !== undefined) {
      throw unreadable(field, problem, 'DIALECT_E_STATE');
    }
  }
  if (parsed['background'] === true) {
    throw unreadable(
      'background',
      'replies are not kept here, so none is made in the background',
      'DIALECT_E_STATE',
    );
  }
  const unknown = new Set<string>();
  noteUnknown(parsed, KNOWN, unknown);
  const { specs, calls } = responsesTools(parsed.tools ?? [], unknown);
  return {
    dialect: 'openai-responses',
    model: parsed.model ?? '',
    stream: parsed.stream ?? false,
    tools: specs,
    messages: [
      ...(parsed.instructions ? [{ role: 'system', text: parsed.instructions } satisfies Message] : []),
      ...conversation(parsed.input, unknown),
    ],
    requested: samplingOf({
      temperature: parsed.temperature,
      topP: parsed.top_p,
      topK: null,
      maxTokens: parsed.max_output_tokens,
      stop: null,
      effort: stringOf(objectOf(parsed['reasoning'])?.['effort']),
    }),
    form: { calls },
    unknown: [...unknown].sort(),
  };
}

/** One turn of the model comes back as several items in a row; here it is one message again. */
function conversation(input: string | Item[], unknown: Set<string>): Message[] {
  if (typeof input === 'string') return [{ role: 'user', text: input }];
  const messages: Message[] = [];
  input.forEach((item, index) => {
    const read = itemOf(item, `input.${index}`, unknown);
    if (read === null) return;
    const last = messages.at(-1);
    if (!Array.isArray(read)) messages.push(read);
    else if (last?.role === 'assistant') last.parts.push(...read);
    else messages.push({ role: 'assistant', parts: read });
  });
  return messages;
}

/** A message, parts of a turn of the model, or null for what is left out. */
function itemOf(item: Item, where: string, unknown: Set<string>): Message | ReplyPart[] | null {
  const type = item.type ?? (item.role == null ? 'without type' : 'message');
  switch (type) {
    case 'message':
      return messageOf(item, where, unknown);
    case 'function_call':
      return [call(item, joinedName(item['namespace'], item['name']), argumentsOf(item['arguments']))];
    case 'custom_tool_call':
      return [call(item, stringOf(item['name']), { input: stringOf(item['input']) })];
    case 'local_shell_call':
      return [call(item, 'local_shell', objectOf(item['action']) ?? {})];
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'local_shell_call_output':
      return {
        role: 'tool',
        callId: stringOf(item['call_id'] ?? item['id']),
        text: resultText(item['output'], `${where}.output`, unknown),
      };
    default:
      if (!DROPPED.has(type)) unknown.add(`item ${type}`);
      return null;
  }
}

function messageOf(item: Item, where: string, unknown: Set<string>): Message | ReplyPart[] {
  const { content } = item;
  const path = `${where}.content`;
  if (!isContent(content)) throw unreadable(path, 'expected a string or a list of content parts');
  switch (item.role) {
    case 'system':
    case 'developer':
      return { role: 'system', text: contentText(content, path, unknown) };
    case 'user':
      return { role: 'user', text: contentText(content, path, unknown) };
    case 'assistant':
      return contentTexts(content, path, unknown).map((text) => ({ type: 'text', text }));
    default:
      throw unreadable(`${where}.role`, `expected system, developer, user or assistant, got "${item.role}"`);
  }
}

const call = (item: Item, name: string, args: Record<string, unknown>): ToolCallPart => ({
  type: 'tool_call',
  id: stringOf(item['call_id'] ?? item['id']),
  name,
  arguments: args,
});
