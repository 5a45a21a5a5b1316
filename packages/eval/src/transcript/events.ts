import type { Message } from '@treeward/messages';
import { canonicalCall } from './canonical-tools.js';
import type { Episode, Turn } from './conversations.js';

export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  cost: { total: number };
}

export type EventContent =
  | { type: 'text'; text: string }
  | {
      type: 'toolCall';
      id: string;
      name: string;
      arguments: Record<string, unknown>;
      /** The call as the harness made it. */
      extra: { name: string; arguments: Record<string, unknown> };
    };

/** OpenClaw's transcript event, which PinchBench's graders read; ours for every harness. */
export interface TranscriptEvent {
  type: 'message';
  message: {
    role: 'assistant' | 'user' | 'toolResult';
    content: EventContent[];
    usage?: Usage;
    toolCallId?: string;
    toolName?: string;
    isError?: boolean;
  };
  extra?: { conversation: number };
}

/** Dollars per million tokens. */
export interface Price {
  input: number;
  output: number;
}

export const costOf = (price: Price | null, input: number, output: number): number =>
  price ? (input * price.input + output * price.output) / 1e6 : 0;

/** The whole episode as events, one conversation after the other, without system messages. */
export function transcriptEvents(episode: Episode, price: Price | null = null): TranscriptEvent[] {
  const several = episode.conversations.length > 1;
  return episode.conversations.flatMap((turns, conversation) => {
    const names = new Map<string, string>();
    return turns.flatMap((turn) => {
      const event = eventOf(turn, episode.harness, names, price);
      return event ? [{ ...event, ...(several && { extra: { conversation } }) }] : [];
    });
  });
}

function eventOf(
  { message, call }: Turn,
  harness: string,
  names: Map<string, string>,
  price: Price | null,
): TranscriptEvent | null {
  if (message.role === 'system') return null;
  if (message.role === 'user') {
    return { type: 'message', message: { role: 'user', content: [{ type: 'text', text: message.text }] } };
  }
  if (message.role === 'tool') {
    const toolName = names.get(message.callId);
    return {
      type: 'message',
      message: {
        role: 'toolResult',
        content: [{ type: 'text', text: message.text }],
        toolCallId: message.callId,
        ...(toolName !== undefined && { toolName }),
        ...(message.isError && { isError: true }),
      },
    };
  }
  const content = message.parts.map((part): EventContent => {
    if (part.type === 'text') return { type: 'text', text: part.text };
    const canonical = canonicalCall(harness, part);
    names.set(part.id, canonical.name);
    return {
      type: 'toolCall',
      id: part.id,
      ...canonical,
      extra: { name: part.name, arguments: part.arguments },
    };
  });
  return {
    type: 'message',
    message: { role: 'assistant', content, ...(call && { usage: usageOf(call, price) }) },
  };
}

function usageOf(call: NonNullable<Turn['call']>, price: Price | null): Usage {
  const { promptTokens: input, sampledTokens: output } = call;
  const total = costOf(price, input, output);
  return { input, output, cacheRead: 0, cacheWrite: 0, totalTokens: input + output, cost: { total } };
}

/** What the agent said last: the text of its final reply. */
export function finalMessage(episode: Episode): string {
  const last: Message | undefined = episode.conversations.at(-1)?.at(-1)?.message;
  if (last?.role !== 'assistant') return '';
  return last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

/** A transcript short enough for a judge: tool arguments and results at 200 characters, the agent's text at 2000. */
export function summariseTranscript(events: readonly TranscriptEvent[]): string {
  const cut = (text: string, limit: number): string =>
    text.length <= limit ? text : `${text.slice(0, limit)} […${text.length - limit} characters cut]`;
  return events
    .flatMap(({ message: { role, content } }) =>
      content.map((part) => {
        if (part.type === 'toolCall')
          return `Tool: ${part.name}(${cut(JSON.stringify(part.arguments), 200)})`;
        if (role === 'toolResult') return `Result: ${cut(part.text, 200)}`;
        return role === 'user' ? `User: ${cut(part.text, 2000)}` : `Agent: ${cut(part.text, 2000)}`;
      }),
    )
    .join('\n');
}
