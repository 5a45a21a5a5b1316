/**
 * The record of one rollout: `telemetry.ndjson` (events, append-only) + `tokens.bin` (ids and logprobs, referenced by
 * byte offset). A prompt is stored as *parent call, kept length, appended span* plus a hash of the whole, so that a record
 * grows with new tokens, never with calls × context. Times are milliseconds since the epoch.
 */
export const RECORD_VERSION = 1;

/** `count` values of 4 bytes at byte `offset` of tokens.bin (int32 ids or float32 logprobs, little-endian). */
export interface Span {
  offset: number;
  count: number;
}

/** Any JSON value; the record keeps messages as its writer had them. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface RolloutStart {
  type: 'rollout.start';
  version: typeof RECORD_VERSION;
  rolloutId: string;
  time: number;
  template: string;
  /** Free-form facts: task, harness and its version, group, run. */
  labels: Record<string, string>;
}

/** A complete request is at the gateway. `call` counts arrivals from 0. */
export interface CallStart {
  type: 'call.start';
  call: number;
  time: number;
  dialect: string;
  /** Without secrets; lower-case names. */
  headers: Record<string, string>;
  bodyHash: string;
  /** Canonical messages: `kept` of the parent call's messages (its reply counts as one more), then `appended`. */
  messages: { parent: number | null; kept: number; appended: Json[] };
  /** The tool manifest in full the first time its hash is seen. */
  tools: { hash: string; specs?: Json };
  requested: Json;
  unknown: string[];
}

/** How the gateway grew the prompt: a claim that recovery checks. */
export interface CallPrompt {
  type: 'call.prompt';
  call: number;
  /** `kept` ids of (parent prompt ++ parent's sampled ids), then the appended span. */
  prompt: { parent: number | null; kept: number; appended: Span; length: number; hash: string };
  graft: { reason: 'root' | 'reply' | 'same-prompt' | 'prefix' | 'rewritten'; keptMessages: number };
}

export interface CallSampled {
  type: 'call.sampled';
  call: number;
  time: number;
  tokens: Span;
  logprobs: Span;
  finish: 'stop' | 'length' | 'abort' | 'error';
  policy: { id: string; version: number };
  sampling: Json;
  reply: { parts: Json[]; malformed?: string };
}

export interface CallEnd {
  type: 'call.end';
  call: number;
  time: number;
  /** When the first content byte was written; null if none was. */
  firstByte: number | null;
  /** `none`: nothing of the reply reached the client. */
  delivery: 'complete' | 'partial' | 'none';
  /** Who ended it: the exchange itself, the client leaving, us (timeout, shutdown), or a failed engine. */
  cause: 'done' | 'client' | 'gateway' | 'engine';
  status: number;
}

export interface ProcessExit {
  type: 'process.exit';
  time: number;
  code: number | null;
  signal: string | null;
  timedOut: boolean;
}

export interface VerifierResult {
  type: 'verifier';
  time: number;
  reward: number | null;
  scores: Record<string, number>;
  error?: { code: string; message: string };
}

export interface RolloutEnd {
  type: 'rollout.end';
  time: number;
  status: 'completed' | 'failed' | 'cancelled';
}

export type RecordEvent =
  RolloutStart | CallStart | CallPrompt | CallSampled | CallEnd | ProcessExit | VerifierResult | RolloutEnd;
