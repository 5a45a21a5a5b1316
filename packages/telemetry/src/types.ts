/**
 * The record of one rollout: `telemetry.ndjson` (events, append-only) + `tokens.bin` (ids and logprobs, referenced by
 * byte offset). A prompt is stored as *parent call, kept length, appended span* plus a hash of the whole, so that a record
 * grows with new tokens, never with calls × context. Times are milliseconds since the epoch.
 */
export const RECORD_VERSION = 1;
/** Counts additions that an older reader may ignore. 0 had no identity, raw messages, witnesses. */
export const RECORD_MINOR = 1;

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
  /** @default 0 */
  minor?: number;
  rolloutId: string;
  time: number;
  template: string;
  /** Free-form facts: task, harness and its version, group, run. */
  labels: Record<string, string>;
}

/** What answers, as the engine's start-up probe measured it. */
export interface EngineEvent {
  type: 'engine';
  time: number;
  facts: Json;
}

/** What the harness says of a request (headers, markers in prompts), read by its adapter. Evidence, never truth. */
export interface Identity {
  session?: string;
  /** Absent on the main agent. */
  agent?: string;
  parentAgent?: string;
  requestClass?: 'main' | 'subagent' | 'compaction' | 'side';
  /** Of the agent below the main one: 0 main, 1 its children. */
  depth?: number;
  /** The request says that it follows a compaction. */
  compacted?: boolean;
}

/** `kept` of the parent call's messages (its reply counts as one more), then `appended`. */
export interface MessagesDelta {
  parent: number | null;
  kept: number;
  appended: Json[];
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
  identity?: Identity;
  /** Canonical messages. */
  messages: MessagesDelta;
  /** As the dialect parsed them, before the harness's wrapping was taken off. Absent where equal to `messages`. */
  raw?: MessagesDelta;
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
  graft: {
    reason: 'root' | 'reply' | 'same-prompt' | 'prefix' | 'rewritten';
    keptMessages: number;
    rewrite?: Rewrite;
  };
}

/** Where a harness's history first differs from what an earlier call holds. */
export interface Rewrite {
  /** Index in this call's canonical messages. */
  message: number;
  /** The earlier call whose history agrees longest; null: none begins like this one. */
  call: number | null;
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
  /** `surrogate`: an upstream gave text only and the ids were made from it. Never trained. @default 'engine' */
  ids?: 'engine' | 'surrogate';
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
  /** What was handed to the client's socket when it ended: bytes and, in a stream, whole events of the reply. */
  sent?: { bytes: number; events: number };
}

/** One path of the workspace whose state differs from the last `workspace` event. */
export interface WorkspaceChange {
  path: string;
  /** `undone`: it is as the task's workspace had it again. */
  kind: 'create' | 'modify' | 'delete' | 'opaque' | 'symlink' | 'dir' | 'other' | 'undone';
  size: number;
  sha256?: string;
}

/** The workspace at a call's arrival (`call`), or at the end of the rollout (null): what changed since the last one. */
export interface WorkspaceEvent {
  type: 'workspace';
  time: number;
  call: number | null;
  changes: WorkspaceChange[];
}

/** A command that ran in the sandbox. */
export interface ToolExec {
  type: 'tool.exec';
  source: 'strace' | 'transcript';
  /** Inside the sandbox; absent from a transcript. */
  pid?: number;
  parentPid?: number;
  /** Cut at 2,000 characters. */
  command: string;
  start: number;
  end: number | null;
  code: number | null;
  signal?: string | null;
}

export interface TranscriptEntry {
  id: string;
  parent: string | null;
  time: number | null;
  kind: 'user' | 'assistant' | 'tool' | 'compaction' | 'other';
  /** Of all but assistant entries; cut at 4,000 characters. */
  text?: string;
  /** Reply parts of an assistant entry, as in `messages`. */
  parts?: Json[];
}

export interface TranscriptAgent {
  /** Empty for the main agent. */
  agent: string;
  parentAgent: string | null;
  /** Id of the tool call that started it, as the harness wrote it. */
  spawnedBy: string | null;
  file: string;
  entries: TranscriptEntry[];
}

/** The harness's own transcript, parsed by its adapter: a second witness. */
export interface TranscriptEvent {
  type: 'transcript';
  time: number;
  agents: TranscriptAgent[];
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
  | RolloutStart
  | EngineEvent
  | CallStart
  | CallPrompt
  | CallSampled
  | CallEnd
  | WorkspaceEvent
  | ToolExec
  | TranscriptEvent
  | ProcessExit
  | VerifierResult
  | RolloutEnd;
