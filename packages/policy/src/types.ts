import type { Message, ReplyPart, RequestedSampling, ToolSpec, Usage } from '@treeward/messages';

/** An immutable set of sampler weights. `version` counts published updates; 0 is the start of the run. */
export interface Policy {
  readonly id: string;
  readonly version: number;
}

/** Weights by file, never by message. */
export interface WeightsRef {
  readonly format: 'gguf' | 'none';
  readonly path: string;
}

/** The distribution that a token was really drawn from. Ratios are only right against this. */
export interface EffectiveSampling {
  temperature: number;
  topP: number;
  topK: number;
  /** Ids that could not be drawn; masked in the learner's softmax as well. */
  bannedIds: readonly number[];
  maxTokens: number;
  /** Seed of this call's own random stream. */
  seed: string;
}

export interface SampleRequest {
  prompt: Int32Array;
  stopIds: readonly number[];
  sampling: EffectiveSampling;
  /** Which rollout asks: prefix-cache affinity, and what a scripted policy plays from. Opaque to a real engine. */
  tag: string;
}

export interface Sampled {
  /** As the engine consumed it. */
  prompt: Int32Array;
  tokens: Int32Array;
  /** One per token, of the distribution `sampling` describes. NaN where the engine cannot say; such tokens never train. */
  logprobs: Float32Array;
  sampling: EffectiveSampling;
  finish: 'stop' | 'length' | 'abort' | 'error';
  policy: Policy;
}

/** Measured at start-up, not assumed. */
export interface EngineFacts {
  name: string;
  /** Are sampled ids returned by the engine itself? */
  ids: boolean;
  /** `processed`: of the masked, temperature-scaled distribution that was sampled from. */
  logprobs: 'processed' | 'raw' | 'none';
  /** Did another temperature change the log-probabilities that came back? Null: it could not be measured. */
  temperature?: boolean | null;
  /** Did the same seed give the same tokens? Null: it could not be measured. */
  seed?: boolean | null;
  contextLength: number;
  vocabSize: number;
  policy: Policy | null;
}

/** A turn asked of an upstream that takes messages, not ids. */
export interface ChatRequest {
  messages: readonly Message[];
  tools: readonly ToolSpec[];
  sampling: RequestedSampling;
  tag: string;
}

export interface ChatReply {
  parts: ReplyPart[];
  finish: 'stop' | 'length';
  usage: Usage;
  /** As the upstream names it. */
  model: string;
  /** What the upstream was told of the request's `sampling`. @default all of it */
  sampling?: RequestedSampling;
}

export interface Engine {
  describe(): Promise<EngineFacts>;
  /** Swaps weights between calls; a call never mixes versions. */
  load(policy: Policy, weights: WeightsRef): Promise<void>;
  /** @throws TreewardError ENGINE_E_CONTEXT (prompt too long), ENGINE_E_NO_POLICY, ENGINE_E_STALE (policy not loaded) */
  sample(
    policy: Policy | 'current',
    request: SampleRequest,
    options?: { signal?: AbortSignal },
  ): Promise<Sampled>;
  /**
   * Only engines whose facts say `ids: false` have it: hosted models. The gateway records surrogate ids (the template's
   * encoding of the text, log-probabilities NaN), so such calls can be looked at and scored but never train.
   */
  chat?(request: ChatRequest, options?: { signal?: AbortSignal }): Promise<ChatReply>;
  close(): Promise<void>;
}

export interface ParsedReply {
  parts: ReplyPart[];
  /** Why the sampled tokens are not a well-formed turn. They then reach the harness as text: the policy's own fault. */
  malformed?: string;
}

/**
 * How a conversation becomes tokens. Append-only: the ids of a conversation that grew are the old ids plus new ones,
 * which is what lets the gateway graft sampled ids instead of re-encoding them.
 */
export interface ChatTemplate {
  readonly id: string;
  readonly vocabSize: number;
  readonly stopIds: readonly number[];
  readonly bannedIds: readonly number[];
  /** Tokens before the first message: the tool manifest as this template shows it. */
  head(tools: readonly ToolSpec[]): Int32Array;
  /** One message, with its role marker. An assistant message is `generation ++ reply(parts)`. */
  message(message: Message): Int32Array;
  /** What stands between the last message and the sampled tokens. */
  readonly generation: Int32Array;
  /** Tokens of a reply as the policy itself would have sampled it (demonstrations, scripted policies). */
  reply(parts: readonly ReplyPart[]): Int32Array;
  /** Sampled tokens to a turn. Never throws: garbage becomes text with `malformed` set. */
  parse(sampled: Int32Array): ParsedReply;
  decode(ids: Int32Array): string;
}

export interface Tokenizer {
  readonly vocabSize: number;
  encode(text: string): Int32Array;
  decode(ids: ArrayLike<number>): string;
}
