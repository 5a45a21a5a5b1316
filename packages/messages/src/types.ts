/**
 * The canonical conversation: what every wire dialect is parsed into and rendered from. A flat list; an Anthropic user
 * message that carries tool results and text becomes `tool`, `tool`, …, `user`.
 */
export interface TextPart {
  type: 'text';
  text: string;
}

export interface ToolCallPart {
  type: 'tool_call';
  /** The dialect's call id. Harnesses rewrite these: never match turns by it. */
  id: string;
  name: string;
  arguments: Record<string, unknown>;
}

export type ReplyPart = TextPart | ToolCallPart;

export type Message =
  | { role: 'system'; text: string } // `system` and `developer`, anywhere in the conversation
  | { role: 'user'; text: string }
  | { role: 'assistant'; parts: ReplyPart[] }
  | { role: 'tool'; callId: string; text: string; isError?: boolean };

export interface ToolSpec {
  name: string;
  description: string;
  /** JSON schema of the arguments, verbatim. */
  parameters: Record<string, unknown>;
}

export type DialectName = 'anthropic-messages' | 'openai-chat' | 'openai-responses';

/** Sampling as the harness asked for it; what was really used is `EffectiveSampling` in `policy`. */
export interface RequestedSampling {
  temperature?: number;
  topP?: number;
  topK?: number;
  maxTokens?: number;
  stop?: string[];
  /** How much the model should think, in the words of whoever asks: `minimal`, `low`, `medium`, `high` and what else there is. */
  effort?: string;
}

/** What a request says about the form of its reply. Goes back to the dialect with the reply. */
export interface ReplyForm {
  /** Chat: whether a stream tells its usage. @default true */
  streamUsage?: boolean;
  /** Responses: tools that are not called by plain function name, by the name that the policy knows. @default none */
  calls?: ReadonlyMap<string, CallForm>;
}

/** `custom`: called with plain text, the policy's argument `input`. `namespaced`: a function inside a namespace. */
export type CallForm = { type: 'custom' } | { type: 'namespaced'; namespace: string; name: string };

/** What is known of a reply before it exists. */
export interface ReplyMeta {
  id: string;
  model: string;
  promptTokens: number;
  /** Seconds since the epoch. @default now */
  created?: number;
  form?: ReplyForm;
}

export interface CanonicalRequest {
  dialect: DialectName;
  model: string;
  stream: boolean;
  tools: ToolSpec[];
  messages: Message[];
  requested: RequestedSampling;
  form: ReplyForm;
  /** Names of body fields and block types that were not understood (kept in the raw hash, ignored in rendering). */
  unknown: string[];
}

export interface Usage {
  promptTokens: number;
  completionTokens: number;
}

export interface Reply {
  id: string;
  model: string;
  parts: ReplyPart[];
  stop: 'stop' | 'tool_calls' | 'length';
  usage: Usage;
  /** Seconds since the epoch. @default now */
  created?: number;
  form?: ReplyForm;
}

/** One server-sent event. `event` is absent in dialects that use bare `data:` lines. */
export interface ServerEvent {
  event?: string;
  data: string;
}

export interface Dialect {
  readonly name: DialectName;
  /** Path suffix (after an optional `/r/<rollout>` prefix) that this dialect answers by POST. */
  readonly path: string;
  /** Where the tokens of a request are counted instead of answered, and how that is said. */
  readonly counting?: { path: string; body(promptTokens: number): unknown };
  /** @throws TreewardError DIALECT_E_* naming the field; lenient about everything it does not need */
  parse(body: unknown): CanonicalRequest;
  /** The whole reply as one JSON body (`stream: false`). */
  render(reply: Reply): unknown;
  /** Events that may legally be sent before the reply exists, so that the client's connection stays warm. */
  opening(meta: ReplyMeta): ServerEvent[];
  /** Sign of life number `beat` (from 0) after `opening`: an event that carries nothing, or a comment. */
  keepAlive(meta: ReplyMeta, beat: number): ServerEvent | string;
  /** The full life cycle after `opening` and `beats` signs of life, in order, up to and including the terminal event. */
  events(reply: Reply, beats?: number): ServerEvent[];
  /** Error body in the dialect's shape. */
  error(status: number, message: string): unknown;
  /** Body of the 400 for a prompt over the model's window: harnesses start compaction when they see exactly this. */
  contextExceeded(promptTokens: number, maximum: number): unknown;
  /** Whether a stream says `contextExceeded` as events after status 200, because clients look for it there. */
  readonly contextExceededInStream: boolean;
  /** An error body after `opening` was already sent; the connection ends behind it. */
  errorEvents(body: unknown, meta: ReplyMeta, beats: number): ServerEvent[];
  /** Body of GET /v1/models (`id` null) and /v1/models/<id>. Any model name is served. */
  models(id: string | null): unknown;
  /** Status for a backend that stays down. */
  readonly overloadedStatus: number;
}
