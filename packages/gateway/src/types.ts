import type { Message, ToolSpec } from '@treeward/messages';
import type { ChatTemplate, Engine } from '@treeward/policy';
import type { Identity, ToolExec, TranscriptEvent, WorkspaceEvent } from '@treeward/telemetry';
import type { Logger } from 'pino';
import type { EncodeThreads } from './encoder.js';

/** Opened by the rollout before its harness starts: an own socket, an own key, an own record. */
export interface OpenEndpoint {
  rolloutId: string;
  /** Host directory that will hold `model.sock`; mounted into the sandbox. */
  socketDirectory: string;
  /** Where telemetry.ndjson and tokens.bin go. */
  recordDirectory: string;
  /** Chooses the canonicaliser; unknown names get the identity. */
  harness: string;
  labels: Record<string, string>;
  /** Seed of the rollout's sampling streams (call k draws from `<seed>/<k>`). */
  seed: string;
  /** `effort`: how much a hosted model is asked to think; one that samples ids takes no such wish. */
  sampling: { temperature: number; topP: number; topK: number; maxTokens: number; effort?: string };
  /**
   * `config`: what the request asks for is recorded and not followed (but for a smaller token limit).
   * `request`: temperature, top-p and top-k of the request win. @default 'config'
   */
  samplingFrom?: 'config' | 'request';
  /** The rollout acknowledges every call's arrival by `witness`; a reply is held for it, for 250 ms at most. @default false */
  witnessArrivals?: boolean;
  budget: { maxCalls: number; maxTokens: number };
}

export interface EndpointInfo {
  key: string;
  socketPath: string;
}

/** What the gateway knows when the rollout closes it. */
export interface EndpointSummary {
  calls: number;
  promptTokens: number;
  sampledTokens: number;
  malformed: number;
  /** Calls still in flight; settled when 0 and `calls` no longer moves. */
  pending: number;
  /** Set when the engine failed for good during some call: an infrastructure fault of this rollout. */
  engineFailure: string | null;
}

export type Canonicaliser = (messages: readonly Message[]) => Message[];

/** What an adapter reads identity from: headers without secrets, messages as the dialect parsed them. */
export interface RequestFacts {
  headers: Readonly<Record<string, string>>;
  messages: readonly Message[];
  tools: readonly ToolSpec[];
}

/** What a rollout saw beside the calls. The gateway writes it into the record, which has one writer at a time. */
export type WitnessEvent = WorkspaceEvent | ToolExec | TranscriptEvent;

export interface GatewayControl {
  open(options: OpenEndpoint): Promise<EndpointInfo>;
  status(rolloutId: string): Promise<EndpointSummary>;
  /** Waits for the arrival of call `after` (counted from 0), a call number; null once the rollout is closed. */
  arrival(rolloutId: string, after: number): Promise<number | null>;
  /** Into the record; acknowledges the arrival of each `workspace` event's call. */
  witness(rolloutId: string, events: readonly WitnessEvent[]): Promise<void>;
  /** Refuses new calls, ends those in flight, closes the record's call side. Idempotent. */
  close(rolloutId: string): Promise<EndpointSummary>;
}

/** Faults on purpose, for tests and benchmarks: what the harness sees instead of, or in the middle of, its reply. */
export interface FaultPlan {
  /** Asked once per call. A status is answered before anything is sampled; a drop loses a reply that was sampled. */
  onCall?(rolloutId: string, call: number): null | { status: number } | 'drop-before' | 'drop-mid';
}

export interface GatewayOptions {
  engine: Engine;
  template: ChatTemplate;
  /** Encodes large texts on worker threads, which make the same template by themselves. @default on the calling thread */
  encodeOn?: EncodeThreads;
  /**
   * False: as a plain chat endpoint, every prompt is rendered and encoded from its text. For comparison only: what is
   * sampled on such prompts is conditioned on other ids than the policy's own. @default true
   */
  graft?: boolean;
  /** Canonicaliser by harness name. @default the identity for every harness */
  canonicalise?: (harness: string) => Canonicaliser;
  /** Identity evidence by harness name. @default none */
  identify?: (harness: string) => (request: RequestFacts) => Identity;
  /** How long a call waits for an engine that is away. @default 60000 */
  engineRetryMs?: number;
  /** How long one try of the engine may take. @default 600000 */
  engineAttemptMs?: number;
  /** Milliseconds without a reply before a stream is opened. @default 3000 */
  openAfterMs?: number;
  /** Milliseconds between keep-alives on an open stream. @default 5000 */
  keepAliveMs?: number;
  /** How long `close` lets samplings finish whose client has left already. @default 10000 */
  closeGraceMs?: number;
  limits?: Partial<ClientLimits>;
  /** One line per call and per refusal, without texts. @default no log */
  log?: Logger;
  /** Adds messages and replies to the log. @default false */
  logPrompts?: boolean;
  faults?: FaultPlan;
}

/** What one rollout's clients may cost. */
export interface ClientLimits {
  /** Of a request body, before and after decoding. @default 16 MiB */
  maxBodyBytes: number;
  /** Of a request's head; more is answered 431. @default 32 KiB */
  maxHeaderBytes: number;
  /** Requests under way at once; more are answered 429 with `retry-after`. @default 64 */
  maxConcurrent: number;
  /** From a request's head to the end of its body; then 408. @default 60000 */
  bodyTimeoutMs: number;
  /** How long a client may take to read its reply; then the connection is cut. @default 120000 */
  sendTimeoutMs: number;
}
