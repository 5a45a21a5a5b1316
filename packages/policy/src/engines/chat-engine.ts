import { TreewardError } from '@treeward/base';
import { nestedTooDeep, type ReplyPart } from '@treeward/messages';
import type { ChatReply, ChatRequest, Engine, EngineFacts, Policy, Sampled } from '../types.js';
import { badReply, isAbort, upstreamError, type ResolvedUpstream } from './upstream.js';

/** Hosted models are fixed: `policy.version` only counts what a loop says it loaded. */
export abstract class ChatEngine implements Engine {
  protected readonly upstream: ResolvedUpstream;
  readonly #name: string;
  readonly #model: string;
  readonly #contextLength: number;
  #policy: Policy;

  constructor(name: string, model: string, upstream: ResolvedUpstream, contextLength: number) {
    this.#name = name;
    this.#model = model;
    this.upstream = upstream;
    this.#contextLength = contextLength;
    this.#policy = { id: model, version: 0 };
  }

  async describe(): Promise<EngineFacts> {
    return {
      name: this.#name,
      ids: false,
      logprobs: 'none',
      temperature: null,
      seed: null,
      contextLength: this.#contextLength,
      vocabSize: 0,
      policy: this.#policy,
    };
  }

  /** Names what answers; a hosted model's weights cannot be changed. */
  async load(policy: Policy): Promise<void> {
    this.#policy = { ...policy };
  }

  /** @throws TreewardError ENGINE_E_TEXT_ONLY always: ids go neither in nor out */
  async sample(): Promise<Sampled> {
    throw new TreewardError(
      'ENGINE_E_TEXT_ONLY',
      `${this.#name} ${this.#model} takes messages, not token ids`,
      {
        hints: [
          'use chat(): recording and evaluation',
          'train on an engine that returns ids and log-probabilities',
        ],
      },
    );
  }

  /** @throws TreewardError ENGINE_E_ABORTED, ENGINE_E_REPLY, and what {@link upstreamError} makes of HTTP */
  async chat(request: ChatRequest, options: { signal?: AbortSignal } = {}): Promise<ChatReply> {
    try {
      return await this.ask(request, options.signal);
    } catch (error) {
      if (isAbort(error))
        throw new TreewardError('ENGINE_E_ABORTED', `${this.#name}: the call was aborted`, { cause: error });
      throw upstreamError(error, `${this.#name} ${this.#model}`, this.upstream.apiKey);
    }
  }

  async close(): Promise<void> {}

  protected abstract ask(request: ChatRequest, signal: AbortSignal | undefined): Promise<ChatReply>;

  protected get model(): string {
    return this.#model;
  }

  protected missing(field: string): TreewardError {
    return badReply(this.#name, field, 'is missing');
  }
}

/** A call whose arguments are not an object is the model's fault and comes back as the text that it is. */
export function callPart(id: string, name: string, args: unknown): ReplyPart {
  const value = typeof args === 'string' ? parsedOrNull(args === '' ? '{}' : args) : args;
  if (typeof value !== 'object' || value === null || Array.isArray(value) || nestedTooDeep(value)) {
    return { type: 'text', text: `${name}(${typeof args === 'string' ? args : JSON.stringify(args)})` };
  }
  return { type: 'tool_call', id, name, arguments: value as Record<string, unknown> };
}

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
