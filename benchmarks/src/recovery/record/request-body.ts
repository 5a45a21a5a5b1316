import type { Message, ReplyPart, ToolSpec } from '@treeward/messages';
import type { Behaviour } from '../simulate/behaviour.js';

/** What an agent wants to send, before it has a dialect's shape. Leading system messages are the system prompt. */
export interface WireRequest {
  messages: readonly Message[];
  tools: readonly ToolSpec[];
  /** Counts the requests of a rollout: what moves from request to request moves with it. */
  turn: number;
}

type Block = Record<string, unknown>;
type Quirks = Behaviour['quirks'];

/** The request as this dialect and harness send it, with everything that makes equal histories look different. */
export function requestBody(
  dialect: Behaviour['dialect'],
  request: WireRequest,
  quirks: Quirks,
): Record<string, unknown> {
  switch (dialect) {
    case 'anthropic-messages':
      return anthropicBody(request, quirks);
    case 'openai-chat':
      return chatBody(request, quirks);
    case 'openai-responses':
      return responsesBody(request);
  }
}

/** The first message that is not part of the system prompt. */
function systemLength(messages: readonly Message[]): number {
  const first = messages.findIndex(({ role }) => role !== 'system');
  return first === -1 ? messages.length : first;
}

const systemText = (messages: readonly Message[], count: number): string =>
  messages
    .slice(0, count)
    .map((message) => (message.role === 'system' ? message.text : ''))
    .join('\n');

function anthropicBody({ messages, tools, turn }: WireRequest, quirks: Quirks): Record<string, unknown> {
  const system = systemLength(messages);
  const out: { role: string; content: Block[] }[] = [];
  let open: { role: string; content: Block[] } | null = null;
  for (const message of messages.slice(system)) {
    if (message.role === 'tool') {
      // Results of one turn, and a text behind them, travel in one user message.
      if (!open) out.push((open = { role: 'user', content: [] }));
      open.content.push({
        type: 'tool_result',
        tool_use_id: message.callId,
        content: message.text,
        ...(message.isError && { is_error: true }),
      });
    } else if (message.role === 'user' && open) {
      open.content.push({ type: 'text', text: message.text });
      open = null;
    } else {
      open = null;
      const content = message.role === 'assistant' ? message.parts.map(useBlock) : [textBlock(message.text)];
      out.push({ role: message.role, content });
    }
  }
  if (quirks.moveCacheMarks) {
    const last = out.at(-1)?.content.at(-1);
    if (last) last['cache_control'] = { type: 'ephemeral' };
  }
  return {
    model: 'policy',
    max_tokens: 4096,
    stream: true,
    system: [textBlock(systemText(messages, system))],
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      description,
      input_schema: parameters,
    })),
    messages: out.map(({ role, content }, index) => {
      const [only] = content;
      const flip = quirks.flipContent && (index + turn) % 2 === 0;
      const plain = content.length === 1 && only?.['type'] === 'text' && !('cache_control' in only);
      return { role, content: flip && plain ? only['text'] : content };
    }),
  };
}

const textBlock = (text: string): Block => ({ type: 'text', text });

const useBlock = (part: ReplyPart): Block =>
  part.type === 'text'
    ? textBlock(part.text)
    : { type: 'tool_use', id: part.id, name: part.name, input: part.arguments };

function chatBody({ messages, tools, turn }: WireRequest, quirks: Quirks): Record<string, unknown> {
  const id = (text: string): string => (quirks.rewriteCallIds ? text.replaceAll('_', '') : text);
  return {
    model: 'policy',
    stream: true,
    max_completion_tokens: 4096,
    tools: tools.map(({ name, description, parameters }) => ({
      type: 'function',
      function: { name, description, parameters },
    })),
    messages: messages.map((message, index) => {
      if (message.role === 'tool') {
        return { role: 'tool', tool_call_id: id(message.callId), content: message.text };
      }
      if (message.role === 'assistant') return chatTurn(message.parts, id);
      const list = quirks.flipContent && (index + turn) % 2 === 0;
      return { role: message.role, content: list ? [textBlock(message.text)] : message.text };
    }),
  };
}

function chatTurn(parts: readonly ReplyPart[], id: (text: string) => string): Block {
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const calls = parts.flatMap((part) =>
    part.type === 'tool_call'
      ? [
          {
            id: id(part.id),
            type: 'function',
            function: { name: part.name, arguments: JSON.stringify(part.arguments) },
          },
        ]
      : [],
  );
  return {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function responsesBody({ messages, tools }: WireRequest): Record<string, unknown> {
  const system = systemLength(messages);
  return {
    model: 'policy',
    stream: true,
    instructions: systemText(messages, system),
    tools: tools.map(({ name, description, parameters }) => ({
      type: 'function',
      name,
      description,
      parameters,
    })),
    input: messages.slice(system).flatMap((message): Block[] => {
      if (message.role === 'tool') {
        return [{ type: 'function_call_output', call_id: message.callId, output: message.text }];
      }
      if (message.role !== 'assistant') {
        return [
          { type: 'message', role: message.role, content: [{ type: 'input_text', text: message.text }] },
        ];
      }
      return message.parts.map((part) =>
        part.type === 'text'
          ? { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: part.text }] }
          : {
              type: 'function_call',
              call_id: part.id,
              name: part.name,
              arguments: JSON.stringify(part.arguments),
            },
      );
    }),
  };
}
