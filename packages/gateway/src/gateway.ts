import { TreewardError } from '@treeward/base';
import type { CallContext } from './call-runner.js';
import { EncodedText } from './encoded-text.js';
import { inlineEncoder, threadedEncoder, type Encoder } from './encoder.js';
import { Endpoint } from './endpoint.js';
import { GatewayMetrics } from './gateway-metrics.js';
import { Pacer } from './pacer.js';
import { Sampler } from './sampler.js';
import type {
  Canonicaliser,
  ClientLimits,
  EndpointInfo,
  EndpointSummary,
  GatewayControl,
  GatewayOptions,
  OpenEndpoint,
  WitnessEvent,
} from './types.js';

const identity: Canonicaliser = (messages) => [...messages];

const LIMITS: ClientLimits = {
  maxBodyBytes: 16 * 2 ** 20,
  maxHeaderBytes: 32 * 2 ** 10,
  maxConcurrent: 64,
  bodyTimeoutMs: 60_000,
  sendTimeoutMs: 120_000,
};

/**
 * The model boundary: one endpoint, key and record per rollout, all of them in front of one engine and one template.
 * Rollouts share encoded text and nothing else.
 */
export class Gateway implements GatewayControl {
  readonly #options: GatewayOptions;
  readonly #encoder: Encoder;
  readonly #metrics: GatewayMetrics;
  readonly #shared: Omit<CallContext, 'canonicalise' | 'identify'>;
  readonly #open = new Map<string, Promise<Endpoint>>();
  readonly #endpoints = new Set<Endpoint>();
  readonly #closed = new Map<string, EndpointSummary>();

  constructor(options: GatewayOptions) {
    const { template, encodeOn } = options;
    this.#options = options;
    this.#encoder = encodeOn ? threadedEncoder(template, encodeOn) : inlineEncoder(template);
    const encoded = new EncodedText(this.#encoder);
    this.#metrics = new GatewayMetrics({
      inFlight: () => [...this.#endpoints].reduce((sum, { summary }) => sum + summary.pending, 0),
      openRollouts: () => this.#endpoints.size,
      encodings: () => encoded.encodings,
    });
    this.#shared = {
      sampler: new Sampler(options.engine, {
        retryMs: options.engineRetryMs ?? 60_000,
        attemptMs: options.engineAttemptMs ?? 600_000,
      }),
      template,
      encoded,
      graft: options.graft ?? true,
      pacer: new Pacer(),
      timing: {
        openAfterMs: options.openAfterMs ?? 3000,
        keepAliveMs: options.keepAliveMs ?? 5000,
      },
      closeGraceMs: options.closeGraceMs ?? 10_000,
      limits: { ...LIMITS, ...options.limits },
      watchers: {
        metrics: this.#metrics,
        log: options.log ?? null,
        logPrompts: options.logPrompts ?? false,
      },
      faults: options.faults ?? {},
    };
  }

  /** @throws TreewardError GATEWAY_E_OPEN (id in use), GATEWAY_E_SOCKET_PATH, GATEWAY_E_RECORD (directory in use), RECORD_E_OPEN */
  async open(options: OpenEndpoint): Promise<EndpointInfo> {
    const { rolloutId } = options;
    if (this.#open.has(rolloutId)) {
      throw new TreewardError('GATEWAY_E_OPEN', `rollout ${rolloutId} has an endpoint already`, {
        data: { rolloutId },
      });
    }
    const opening = Endpoint.open(options, {
      ...this.#shared,
      canonicalise: this.#options.canonicalise?.(options.harness) ?? identity,
      identify: this.#identifier(options.harness),
    });
    this.#open.set(rolloutId, opening);
    try {
      const endpoint = await opening;
      this.#endpoints.add(endpoint);
      return endpoint.info;
    } catch (error) {
      this.#open.delete(rolloutId);
      throw error;
    }
  }

  /** @throws TreewardError GATEWAY_E_UNKNOWN */
  async status(rolloutId: string): Promise<EndpointSummary> {
    const endpoint = await this.#open.get(rolloutId);
    const summary = endpoint?.summary ?? this.#closed.get(rolloutId);
    if (!summary) throw unknownRollout(rolloutId);
    return summary;
  }

  /** Null also for a rollout that is closed or unknown: there is nothing to wait for. */
  async arrival(rolloutId: string, after: number): Promise<number | null> {
    const endpoint = await this.#open.get(rolloutId);
    return endpoint ? endpoint.arrival(after) : null;
  }

  /** @throws TreewardError GATEWAY_E_UNKNOWN when the rollout is not open */
  async witness(rolloutId: string, events: readonly WitnessEvent[]): Promise<void> {
    const endpoint = await this.#open.get(rolloutId);
    if (!endpoint) throw unknownRollout(rolloutId);
    endpoint.witness(events);
  }

  /** @throws TreewardError GATEWAY_E_UNKNOWN, RECORD_E_WRITE */
  async close(rolloutId: string): Promise<EndpointSummary> {
    const endpoint = await this.#open.get(rolloutId);
    if (!endpoint) return this.status(rolloutId);
    try {
      return await endpoint.close();
    } finally {
      this.#closed.set(rolloutId, endpoint.summary);
      this.#endpoints.delete(endpoint);
      this.#open.delete(rolloutId);
    }
  }

  /** Prometheus text; figures of all rollouts together. */
  metricsText(): Promise<string> {
    return this.#metrics.text();
  }

  /** Closes every endpoint. The engine belongs to whoever gave it. */
  async dispose(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((rolloutId) => this.close(rolloutId)));
    this.#metrics.close();
    await this.#encoder.close();
  }

  /** Evidence is worth having and never worth a call: what an adapter fails at is left out, and logged. */
  #identifier(harness: string): CallContext['identify'] {
    const identify = this.#options.identify?.(harness);
    if (!identify) return () => null;
    return (request) => {
      try {
        return identify(request);
      } catch (error) {
        this.#options.log?.warn({ harness, error: (error as Error).name }, 'identity not read');
        return null;
      }
    };
  }
}

const unknownRollout = (rolloutId: string): TreewardError =>
  new TreewardError('GATEWAY_E_UNKNOWN', `no endpoint was opened for rollout ${rolloutId}`, {
    data: { rolloutId },
    hints: ['a restarted gateway has lost its rollouts: they end as infrastructure faults'],
  });
