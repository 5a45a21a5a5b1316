import { z } from 'zod';
import {
  argumentsOf,
  blockPath,
  blocksOf,
  blockText,
  contentSchema,
  contentText,
  isContent,
  isObjects,
  noteUnknown,
  nullishBoolean,
  nullishNumber,
  nullishObjects,
  nullishString,
  nullishStrings,
  objectOf,
  parseBody,
  resultText,
  samplingOf,
  stringOf,
  unreadable,
  type Content,
} from './lenient.js';
import type { CanonicalRequest, Message, ReplyPart, ToolSpec } from './types.js';

export const anthropicSchema = z.looseObject({
  model: z.string().nullish(),
  messages: z.array(z.looseObject({ role: z.string(), content: contentSchema })),
  system: contentSchema,
  tools: z.array(z.looseObject({})).nullish(),
  stream: z.boolean().nullish(),
  max_tokens: z.number().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: z.number().nullish(),
  stop_sequences: z.array(z.string()).nullish(),
});

/** `anthropicSchema` by hand. */
export const acceptsAnthropic = (body: Record<string, unknown>): boolean =>
  nullishString(body['model']) &&
  isObjects(body['messages'], ({ role, content }) => typeof role === 'string' && isContent(content)) &&
  isContent(body['system']) &&
  nullishObjects(body['tools']) &&
  nullishBoolean(body['stream']) &&
  nullishNumber(body['max_tokens']) &&
  nullishNumber(body['temperature']) &&
  nullishNumber(body['top_p']) &&
  nullishNumber(body['top_k']) &&
  nullishStrings(body['stop_sequences']);

const KNOWN = new Set(
  (
    'model messages system tools tool_choice stream max_tokens temperature top_p top_k stop_sequences metadata ' +
    'thinking context_management output_config output_format service_tier cache_control container mcp_servers betas'
  ).split(' '),
);

/** Body of `POST /v1/messages` (and of count_tokens) to the canonical request. */
export function parseAnthropicMessages(body: unknown): CanonicalRequest {
  const parsed = parseBody(anthropicSchema, acceptsAnthropic, body);
  const unknown = new Set<string>();
  noteUnknown(parsed, KNOWN, unknown);
  const messages: Message[] = [];
  const system = contentText(parsed.system, 'system', unknown);
  if (system !== '') messages.push({ role: 'system', text: system });
  parsed.messages.forEach(({ role, content }, index) => {
    if (role === 'user' && typeof content === 'string') {
      messages.push({ role, text: content });
      return;
    }
    const where = `messages.${index}.content`;
    if (role === 'assistant') messages.push(assistant(content, where, unknown));
    else if (role === 'user') messages.push(...user(content, where, unknown));
    else if (role === 'system' || role === 'developer') {
      messages.push({ role: 'system', text: contentText(content, where, unknown) });
    } else {
      throw unreadable(`messages.${index}.role`, `expected user, assistant or system, got "${role}"`);
    }
  });
  return {
    dialect: 'anthropic-messages',
    model: parsed.model ?? '',
    stream: parsed.stream ?? false,
    tools: (parsed.tools ?? []).flatMap((tool) => toolSpec(tool, unknown)),
    messages,
    requested: samplingOf({
      temperature: parsed.temperature,
      topP: parsed.top_p,
      topK: parsed.top_k,
      maxTokens: parsed.max_tokens,
      stop: parsed.stop_sequences,
      effort: stringOf(objectOf(parsed['output_config'])?.['effort']),
    }),
    form: {},
    unknown: [...unknown].sort(),
  };
}

/** A placeholder without `input_schema` names tools that can still be searched for; it cannot be called. */
function toolSpec(tool: Record<string, unknown>, unknown: Set<string>): ToolSpec[] {
  const { name, description, input_schema } = tool;
  const parameters = objectOf(input_schema);
  if (typeof name !== 'string' || !parameters) {
    unknown.add(`tool ${typeof tool['type'] === 'string' ? tool['type'] : 'without schema'}`);
    return [];
  }
  return [{ name, description: stringOf(description), parameters }];
}

function assistant(content: Content, where: string, unknown: Set<string>): Message {
  const parts: ReplyPart[] = [];
  blocksOf(content).forEach((block, index) => {
    if (block.type === 'tool_use') {
      const { id, name, input } = block;
      parts.push({
        type: 'tool_call',
        id: stringOf(id),
        name: stringOf(name),
        arguments: argumentsOf(input),
      });
    } else if (block.type !== 'thinking' && block.type !== 'redacted_thinking') {
      const text = blockText(block, blockPath(content, where, index), unknown);
      if (text !== null) parts.push({ type: 'text', text });
    }
  });
  return { role: 'assistant', parts };
}

/** Tool results become messages of their own, in the order of the blocks; neighbouring texts become one user message. */
function user(content: Content, where: string, unknown: Set<string>): Message[] {
  const messages: Message[] = [];
  let texts: string[] = [];
  const flush = (): void => {
    if (texts.length > 0) messages.push({ role: 'user', text: texts.join('\n') });
    texts = [];
  };
  blocksOf(content).forEach((block, index) => {
    const path = blockPath(content, where, index);
    if (block.type === 'tool_result') {
      flush();
      messages.push({
        role: 'tool',
        callId: stringOf(block['tool_use_id']),
        text: resultText(block['content'], `${path}.content`, unknown),
        ...(block['is_error'] === true && { isError: true }),
      });
    } else {
      const text = blockText(block, path, unknown);
      if (text !== null) texts.push(text);
    }
  });
  flush();
  return messages.length > 0 ? messages : [{ role: 'user', text: '' }];
}
