import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TreewardError } from '@treeward/base';
import type { EndpointSummary, GatewayControl, OpenEndpoint } from '@treeward/gateway';
import { adapters } from '@treeward/harness-adapters';
import type { FrontTarget } from './front.js';

export interface ServedOptions {
  gateway: GatewayControl;
  /** Of unix sockets: short. */
  socketRoot: string;
  /** Records go to `<records>/<endpoint>/`. */
  records: string;
  /** Whose canonical form is applied at paths without a harness prefix. */
  harness: string;
  sampling: OpenEndpoint['sampling'];
  samplingFrom: NonNullable<OpenEndpoint['samplingFrom']>;
  seed: string;
  /** Calls after which a fresh endpoint takes over, so that a server's memory does not grow for ever. @default 2000 */
  rotateAfter?: number;
  /** @default false: records are removed when their endpoint is */
  keepRecords?: boolean;
}

interface Served {
  id: string;
  harness: string;
  socketPath: string;
  key: string;
}

/**
 * The endpoints behind a served policy: one per harness, opened when it is first asked for. A path `/<harness>/…` names the
 * harness whose wrapping is taken off; the policy then sees what it saw in training.
 */
export class ServedEndpoints {
  readonly #options: ServedOptions;
  readonly #current = new Map<string, Promise<Served>>();
  readonly #retiring = new Set<Promise<void>>();
  #opened = 0;
  #closing = false;

  constructor(options: ServedOptions) {
    this.#options = options;
  }

  async target(path: string): Promise<FrontTarget> {
    const named = /^\/([^/?]+)(\/.*)$/.exec(path);
    const prefix = adapters.find(({ name }) => name === named?.[1])?.name;
    const harness = prefix ?? this.#options.harness;
    const { socketPath, key } = await this.#endpoint(harness);
    return { socketPath, key, path: prefix === undefined ? path : named![2]! };
  }

  /** Calls and tokens of the endpoints that are open. */
  async summaries(): Promise<Map<string, EndpointSummary>> {
    const served = await Promise.all(this.#current.values());
    const entries = served.map(
      async ({ id, harness }) => [harness, await this.#options.gateway.status(id)] as const,
    );
    return new Map(await Promise.all(entries));
  }

  async close(): Promise<void> {
    this.#closing = true;
    const served = await Promise.allSettled(this.#current.values());
    this.#current.clear();
    await Promise.all(
      served.map((one) => (one.status === 'fulfilled' ? this.#remove(one.value) : undefined)),
    );
    await Promise.all(this.#retiring);
  }

  async #endpoint(harness: string): Promise<Served> {
    const known = this.#current.get(harness);
    if (known) {
      const served = await known;
      const calls = await this.#calls(served);
      if (calls !== null && calls < (this.#options.rotateAfter ?? 2000)) return served;
      // Another request may have replaced it while this one was asking.
      if (this.#current.get(harness) === known) {
        this.#current.delete(harness);
        if (calls !== null) this.#retire(served);
      }
    }
    let opening = this.#current.get(harness);
    if (!opening) {
      opening = this.#open(harness);
      this.#current.set(harness, opening);
      opening.catch(() => this.#current.delete(harness));
    }
    return opening;
  }

  /** Null when a restarted gateway no longer knows it. */
  async #calls({ id }: Served): Promise<number | null> {
    try {
      return (await this.#options.gateway.status(id)).calls;
    } catch (error) {
      if (TreewardError.isInstance(error) && error.code === 'GATEWAY_E_UNKNOWN') return null;
      throw error;
    }
  }

  async #open(harness: string): Promise<Served> {
    const { gateway, records, sampling, samplingFrom, seed, socketRoot } = this.#options;
    const id = `serve-${harness}-${this.#opened++}`;
    const recordDirectory = join(records, id);
    rmSync(recordDirectory, { recursive: true, force: true });
    const { key, socketPath } = await gateway.open({
      rolloutId: id,
      socketDirectory: join(socketRoot, id),
      recordDirectory,
      harness,
      labels: { harness, served: 'true' },
      seed: `${seed}/${id}`,
      sampling,
      samplingFrom,
      budget: { maxCalls: Number.MAX_SAFE_INTEGER, maxTokens: Number.MAX_SAFE_INTEGER },
    });
    return { id, harness, socketPath, key };
  }

  /** Closes it once nobody waits for it any more. */
  #retire(served: Served): void {
    const done = (async () => {
      while (!this.#closing && (await this.#options.gateway.status(served.id)).pending > 0) await sleep(200);
      await this.#remove(served);
    })().catch(() => undefined); // its gateway died: nothing is left to close
    this.#retiring.add(done);
    void done.finally(() => this.#retiring.delete(done));
  }

  async #remove({ id }: Served): Promise<void> {
    await this.#options.gateway.close(id).catch(() => undefined);
    rmSync(join(this.#options.socketRoot, id), { recursive: true, force: true });
    if (!this.#options.keepRecords) rmSync(join(this.#options.records, id), { recursive: true, force: true });
  }
}
