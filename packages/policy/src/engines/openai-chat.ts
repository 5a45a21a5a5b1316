import OpenAI from 'openai';
import type { Message } from '@treeward/messages';
import type { ChatReply, ChatRequest } from '../types.js';
import { callPart, ChatEngine } from './chat-engine.js';
import { resolveUpstream, type UpstreamOptions } from './upstream.js';

export interface OpenAiChatEngineOptions extends UpstreamOptions {
  /** Up to and including `/v1`. */
  baseUrl: string;
  /** Tokens; only told to callers. @default 128000 */
  contextLength?: number;
  /**
   * Whether the upstream takes `top_k`, which is no part of OpenAI's API: vLLM, SGLang and llama.cpp do, others refuse
   * the request. Where it does not, replies say that it was not told. @default false
   */
  topK?: boolean;
}

/** A server that speaks OpenAI Chat Completions. Text in, text out: for recording and evaluation. */
export class OpenAiChatEngine extends ChatEngine {
  readonly #client: OpenAI;
  readonly #takesTopK: boolean;

  /** @throws TreewardError ENGINE_E_CONFIG */
  constructor(options: OpenAiChatEngineOptions) {
    const upstream = resolveUpstream(options);
    super('openai-compatible', options.model, upstream, options.contextLength ?? 128_000);
    this.#takesTopK = options.topK ?? false;
    this.#client = new OpenAI({
      ...upstream,
      baseURL: options.baseUrl,
      organization: null,
      project: null,
      logLevel: 'off',
    });
  }

  protected async ask(
    { messages, tools, sampling }: ChatRequest,
    signal: AbortSignal | undefined,
  ): Promise<ChatReply> {
    const { topK, ...withoutTopK } = sampling;
    const reply = await this.#client.chat.completions.create(
      {
        model: this.model,
        messages: messages.map(openAiMessage),
        ...(tools.length > 0
          ? {
              tools: tools.map(({ name, description, parameters }) => ({
                type: 'function' as const,
                function: { name, description, parameters },
              })),
            }
          : {}),
        ...(sampling.temperature === undefined ? {} : { temperature: sampling.temperature }),
        ...(sampling.topP === undefined ? {} : { top_p: sampling.topP }),
        ...(this.#takesTopK && topK !== undefined ? { top_k: topK } : {}),
        ...(sampling.maxTokens === undefined ? {} : { max_tokens: sampling.maxTokens }),
        ...(sampling.stop === undefined ? {} : { stop: sampling.stop }),
        ...(sampling.effort === undefined
          ? {}
          : { reasoning_effort: sampling.effort as OpenAI.ReasoningEffort }),
      },
      { signal },
    );
    const choice = reply.choices?.[0];
    if (!choice?.message) throw this.missing('choices[0].message');
    const calls = (choice.message.tool_calls ?? []).flatMap((call) =>
      call.type === 'function' ? [callPart(call.id, call.function.name, call.function.arguments)] : [],
    );
    const text = choice.message.content ?? '';
    return {
      parts: [...(text !== '' || calls.length === 0 ? [{ type: 'text' as const, text }] : []), ...calls],
      finish: choice.finish_reason === 'length' ? 'length' : 'stop',
      usage: {
        promptTokens: reply.usage?.prompt_tokens ?? 0,
        completionTokens: reply.usage?.completion_tokens ?? 0,
      },
      model: reply.model,
      ...(topK !== undefined && !this.#takesTopK && { sampling: withoutTopK }),
    };
  }
}

function openAiMessage(message: Message): OpenAI.ChatCompletionMessageParam {
  switch (message.role) {
    case 'system':
    case 'user':
      return { role: message.role, content: message.text };
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: message.text };
    case 'assistant': {
      const text = message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
      const calls = message.parts.flatMap((part) =>
        part.type === 'tool_call'
          ? [
              {
                id: part.id,
                type: 'function' as const,
                function: { name: part.name, arguments: JSON.stringify(part.arguments) },
              },
            ]
          : [],
      );
      return {
        role: 'assistant',
        content: text === '' && calls.length > 0 ? null : text,
        ...(calls.length > 0 ? { tool_calls: calls } : {}),
      };
    }
  }
}
