import type { Message } from '@treeward/messages';

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
  sampling: { temperature: number; topP: number; topK: number; maxTokens: number };
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

export interface GatewayControl {
  open(options: OpenEndpoint): Promise<EndpointInfo>;
  status(rolloutId: string): Promise<EndpointSummary>;
  /** Refuses new calls, ends those in flight, closes the record's call side. Idempotent. */
  close(rolloutId: string): Promise<EndpointSummary>;
}
