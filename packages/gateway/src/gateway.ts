import { TreewardError } from '@treeward/base';
import type { CallContext } from './call-runner.js';
import { EncodedText } from './encoded-text.js';
import { Endpoint } from './endpoint.js';
import { Sampler } from './sampler.js';
import type {
  Canonicaliser,
  EndpointInfo,
  EndpointSummary,
  GatewayControl,
  GatewayOptions,
  OpenEndpoint,
  WitnessEvent,
} from './types.js';

const identity: Canonicaliser = (messages) => [...messages];

/**
 * The model boundary: one endpoint, key and record per rollout, all of them in front of one engine and one template.
 * Rollouts share encoded text and nothing else.
 */
export class Gateway implements GatewayControl {
  readonly #shared: Omit<CallContext, 'canonicalise'>;
  readonly #canonicalise: (harness: string) => Canonicaliser;
  readonly #open = new Map<string, Promise<Endpoint>>();
  readonly #closed = new Map<string, EndpointSummary>();

  constructor(options: GatewayOptions) {
    this.#canonicalise = options.canonicalise ?? (() => identity);
    this.#shared = {
      sampler: new Sampler(options.engine, options.engineRetryMs ?? 60_000),
      template: options.template,
      encoded: new EncodedText(options.template),
      timing: {
        openAfterMs: options.openAfterMs ?? 3000,
        keepAliveMs: options.keepAliveMs ?? 5000,
      },
      closeGraceMs: options.closeGraceMs ?? 10_000,
      maxBodyBytes: options.maxBodyBytes ?? 16 * 2 ** 20,
      faults: options.faults ?? {},
    };
  }

  /** @throws TreewardError GATEWAY_E_OPEN (id in use), GATEWAY_E_SOCKET_PATH, RECORD_E_OPEN */
  async open(options: OpenEndpoint): Promise<EndpointInfo> {
    const { rolloutId } = options;
    if (this.#open.has(rolloutId)) {
      throw new TreewardError('GATEWAY_E_OPEN', `rollout ${rolloutId} has an endpoint already`, {
        data: { rolloutId },
      });
    }
    const opening = Endpoint.open(options, {
      ...this.#shared,
      canonicalise: this.#canonicalise(options.harness),
    });
    this.#open.set(rolloutId, opening);
    try {
      return (await opening).info;
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
      this.#open.delete(rolloutId);
    }
  }

  /** Closes every endpoint. The engine belongs to whoever gave it. */
  async dispose(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((rolloutId) => this.close(rolloutId)));
  }
}

const unknownRollout = (rolloutId: string): TreewardError =>
  new TreewardError('GATEWAY_E_UNKNOWN', `no endpoint was opened for rollout ${rolloutId}`, {
    data: { rolloutId },
    hints: ['a restarted gateway has lost its rollouts: they end as infrastructure faults'],
  });
