import Anthropic from '@anthropic-ai/sdk';
import type { Message, ReplyPart } from '@treeward/messages';
import type { ChatReply, ChatRequest } from '../types.js';
import { callPart, ChatEngine } from './chat-engine.js';
import { resolveUpstream, type UpstreamOptions } from './upstream.js';

export interface AnthropicEngineOptions extends UpstreamOptions {
  /** Without `/v1`. @default the client's own */
  baseUrl?: string;
  /** Tokens; only told to callers. @default 200000 */
  contextLength?: number;
}

/** The protocol wants a limit in every request. */
const MAX_TOKENS = 8192;

/** A server that speaks Anthropic Messages. Text in, text out: for recording and evaluation. */
export class AnthropicEngine extends ChatEngine {
  readonly #client: Anthropic;

  /** @throws TreewardError ENGINE_E_CONFIG */
  constructor(options: AnthropicEngineOptions) {
    const upstream = resolveUpstream(options);
    super('anthropic', options.model, upstream, options.contextLength ?? 200_000);
    this.#client = new Anthropic({
      ...upstream,
      authToken: null,
      logLevel: 'off',
      ...(options.baseUrl === undefined ? {} : { baseURL: options.baseUrl }),
    });
  }

  protected async ask(
    { messages, tools, sampling }: ChatRequest,
    signal: AbortSignal | undefined,
  ): Promise<ChatReply> {
    const first = messages.findIndex(({ role }) => role !== 'system');
    const leading = first < 0 ? messages : messages.slice(0, first);
    const system = leading
      .flatMap((message) => (message.role === 'system' ? [message.text] : []))
      .join('\n\n');
    const reply = await this.#client.messages.create(
      {
        model: this.model,
        max_tokens: sampling.maxTokens ?? MAX_TOKENS,
        messages: turns(first < 0 ? [] : messages.slice(first)),
        ...(system === '' ? {} : { system }),
        ...(tools.length > 0
          ? {
              tools: tools.map(({ name, description, parameters }) => ({
                name,
                description,
                input_schema: { type: 'object' as const, ...parameters },
              })),
            }
          : {}),
        ...(sampling.temperature === undefined ? {} : { temperature: sampling.temperature }),
        ...(sampling.topP === undefined ? {} : { top_p: sampling.topP }),
        ...(sampling.topK === undefined ? {} : { top_k: sampling.topK }),
        ...(sampling.stop === undefined ? {} : { stop_sequences: sampling.stop }),
        ...(sampling.effort === undefined ? {} : { output_config: { effort: effortOf(sampling.effort) } }),
      },
      { signal },
    );
    if (!Array.isArray(reply.content)) throw this.missing('content');
    const parts = reply.content.flatMap((block): ReplyPart[] => {
      if (block.type === 'text') return [{ type: 'text', text: block.text }];
      return block.type === 'tool_use' ? [callPart(block.id, block.name, block.input)] : [];
    });
    return {
      parts: parts.length > 0 ? parts : [{ type: 'text', text: '' }],
      finish: reply.stop_reason === 'max_tokens' ? 'length' : 'stop',
      usage: {
        promptTokens: reply.usage?.input_tokens ?? 0,
        completionTokens: reply.usage?.output_tokens ?? 0,
      },
      model: reply.model,
    };
  }
}

/** Its scale begins at low. */
const effortOf = (effort: string): NonNullable<Anthropic.OutputConfig['effort']> =>
  (effort === 'minimal' ? 'low' : effort) as NonNullable<Anthropic.OutputConfig['effort']>;

/** Neighbours of one side become one turn; a system message in the middle is said by the user's side. */
function turns(messages: readonly Message[]): Anthropic.MessageParam[] {
  const out: { role: 'user' | 'assistant'; content: Anthropic.ContentBlockParam[] }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const content = blocks(message);
    const last = out.at(-1);
    if (last?.role === role) last.content.push(...content);
    else out.push({ role, content });
  }
  return out.filter(({ content }) => content.length > 0);
}

function blocks(message: Message): Anthropic.ContentBlockParam[] {
  switch (message.role) {
    case 'tool':
      return [
        {
          type: 'tool_result',
          tool_use_id: message.callId,
          content: message.text,
          ...(message.isError ? { is_error: true } : {}),
        },
      ];
    case 'assistant':
      return message.parts.flatMap((part): Anthropic.ContentBlockParam[] => {
        if (part.type === 'tool_call') {
          return [{ type: 'tool_use', id: part.id, name: part.name, input: part.arguments }];
        }
        return part.text === '' ? [] : [{ type: 'text', text: part.text }];
      });
    default:
      return message.text === '' ? [] : [{ type: 'text', text: message.text }];
  }
}
