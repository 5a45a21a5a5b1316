import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, statSync, unlinkSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { RolloutFolder, TreewardError } from '@treeward/base';
import {
  countingDialectForPath,
  dialectForPath,
  dialectOfClient,
  MODELS_PATH,
  type Dialect,
} from '@treeward/messages';
import { RECORD_MINOR, RECORD_VERSION, RecordWriter } from '@treeward/telemetry';
import { CallRunner, type CallContext } from './call-runner.js';
import { CallWatch } from './call-watch.js';
import { Exchange } from './exchange.js';
import { presentsKey } from './presents-key.js';
import type { EndpointInfo, EndpointSummary, OpenEndpoint, WitnessEvent } from './types.js';

/** Bytes of a socket path that the kernel takes, with its end. */
const SOCKET_PATH_LIMIT = 108;

/** One rollout: its socket, its key, its routes. What a call does stands in call-runner.ts. */
export class Endpoint {
  readonly #options: OpenEndpoint;
  readonly #context: CallContext;
  readonly #key = `tw-${randomBytes(24).toString('hex')}`;
  readonly #socketPath: string;
  readonly #server: Server;
  readonly #writer: RecordWriter;
  readonly #runner: CallRunner;
  /** Requests from their first line to the last event of their record. */
  readonly #requests = new Set<Promise<void>>();
  #closing: Promise<EndpointSummary> | null = null;

  private constructor(options: OpenEndpoint, context: CallContext) {
    this.#options = options;
    this.#context = context;
    this.#socketPath = join(options.socketDirectory, 'model.sock');
    if (Buffer.byteLength(this.#socketPath) >= SOCKET_PATH_LIMIT) {
      throw new TreewardError(
        'GATEWAY_E_SOCKET_PATH',
        `socketDirectory: ${this.#socketPath} is longer than the ${SOCKET_PATH_LIMIT - 1} bytes a socket path may have`,
        { hints: ['use a shorter run directory, or put the sockets below /tmp'] },
      );
    }
    // Calls are numbered from 0: behind another gateway's calls (it died, say) they would be counted twice.
    const { telemetry } = new RolloutFolder(options.recordDirectory);
    if (existsSync(telemetry) && statSync(telemetry).size > 0) {
      throw new TreewardError('GATEWAY_E_RECORD', `${telemetry} holds a rollout's record already`, {
        data: { file: telemetry },
        hints: ['a rollout that is run again needs an empty directory'],
      });
    }
    this.#writer = RecordWriter.open(options.recordDirectory);
    this.#runner = new CallRunner(options, context, this.#writer, this.#key);
    const { maxHeaderBytes, maxConcurrent } = context.limits;
    // A head over the limit is answered 431 by the server itself.
    this.#server = createServer({ maxHeaderSize: maxHeaderBytes }, (request, response) => {
      const done = this.#answer(request, response).catch(() => {
        response.destroy();
      });
      this.#requests.add(done);
      void done.finally(() => this.#requests.delete(done));
    });
    // Of what is read, `readBody` counts the time; this is for a refused request whose body never ends.
    this.#server.requestTimeout = context.limits.bodyTimeoutMs + 60_000;
    this.#server.keepAliveTimeout = 60_000;
    // Idle ones that a client keeps for later among them.
    this.#server.maxConnections = 4 * maxConcurrent;
  }

  static async open(options: OpenEndpoint, context: CallContext): Promise<Endpoint> {
    const endpoint = new Endpoint(options, context);
    try {
      await endpoint.#listen();
    } catch (error) {
      await endpoint.#writer.close();
      throw error;
    }
    endpoint.#writer.append({
      type: 'rollout.start',
      version: RECORD_VERSION,
      minor: RECORD_MINOR,
      rolloutId: options.rolloutId,
      time: Date.now(),
      template: context.template.id,
      labels: options.labels,
    });
    void endpoint.#runner.describe();
    return endpoint;
  }

  get info(): EndpointInfo {
    return { key: this.#key, socketPath: this.#socketPath };
  }

  get summary(): EndpointSummary {
    return this.#runner.summary;
  }

  arrival(after: number): Promise<number | null> {
    return this.#runner.arrivals.next(after);
  }

  witness(events: readonly WitnessEvent[]): void {
    for (const event of events) {
      this.#writer.append(event);
      if (event.type === 'workspace' && event.call !== null) this.#runner.arrivals.acknowledge(event.call);
    }
  }

  close(): Promise<EndpointSummary> {
    return (this.#closing ??= this.#close());
  }

  async #listen(): Promise<void> {
    const directory = this.#options.socketDirectory;
    mkdirSync(directory, { recursive: true });
    // Whoever the sandbox's user is must get to the socket, and only to it.
    chmodSync(directory, 0o755);
    if (existsSync(this.#socketPath)) unlinkSync(this.#socketPath);
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#socketPath, resolve);
    });
    chmodSync(this.#socketPath, 0o666);
  }

  async #close(): Promise<EndpointSummary> {
    const stopped = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    await this.#runner.close(this.#context.closeGraceMs);
    this.#server.closeAllConnections();
    await Promise.all(this.#requests);
    await stopped;
    await this.#writer.close();
    return this.summary;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = this.#localPath(request.url ?? '/');
    if (request.method === 'HEAD') return void response.writeHead(200).end();

    const counting = path === null ? null : countingDialectForPath(path);
    const dialect = path === null ? null : (counting ?? dialectForPath(path));
    if (dialect && request.method === 'POST') {
      if (!this.#authorised(request)) return this.#refuse(request, response, dialect);
      // Nothing more is taken in while the disk is behind; one that failed is found out by the call's first event.
      if (this.#writer.behind) await this.#writer.drain().catch(() => undefined);
      if (this.#runner.pending >= this.#context.limits.maxConcurrent) {
        return this.#putOff(request, response, dialect);
      }
      if (counting) return this.#count(request, response, dialect);
      return this.#runner.run(dialect, request, response);
    }
    request.resume();
    const shapes = dialectOfClient(request.url ?? '', request.headers);
    if (
      request.method === 'GET' &&
      path !== null &&
      (path === MODELS_PATH || path.startsWith(`${MODELS_PATH}/`))
    ) {
      if (!this.#authorised(request)) return this.#refuse(request, response, shapes);
      const id = path.slice(MODELS_PATH.length + 1);
      return sendJson(response, 200, shapes.models(id === '' ? null : decoded(id)));
    }
    const message = `nothing is served at ${request.method} ${request.url}`;
    return sendJson(response, 404, shapes.error(404, message));
  }

  /** Path without query, trailing slash and this rollout's prefix; null below another rollout's prefix. */
  #localPath(url: string): string | null {
    const path = url.split('?')[0]!.replace(/\/+$/, '');
    const prefixed = /^\/r\/([^/]+)(\/.*)?$/.exec(path);
    if (!prefixed) return path;
    return decoded(prefixed[1]!) === this.#options.rolloutId ? (prefixed[2] ?? '') : null;
  }

  #authorised({ headers }: IncomingMessage): boolean {
    return presentsKey(headers, this.#key);
  }

  #putOff(request: IncomingMessage, response: ServerResponse, dialect: Dialect): void {
    request.resume();
    this.#context.watchers.metrics.refused(429);
    response.setHeader('retry-after', '1');
    const limit = this.#context.limits.maxConcurrent;
    sendJson(response, 429, dialect.error(429, `this rollout has ${limit} requests under way already`));
  }

  #refuse(request: IncomingMessage, response: ServerResponse, dialect: Dialect): void {
    request.resume();
    this.#context.watchers.metrics.refused(401);
    sendJson(response, 401, dialect.error(401, 'this key was not issued for this rollout'));
  }

  async #count(request: IncomingMessage, response: ServerResponse, dialect: Dialect): Promise<void> {
    const exchange = new Exchange(response, dialect);
    const watch = new CallWatch(this.#context.watchers);
    const parsed = await this.#runner.parse(dialect, request, { exchange, watch });
    if (!parsed) return;
    const length = await this.#runner.promptLength(parsed.request);
    sendJson(response, 200, dialect.counting!.body(length));
    watch.counted();
  }
}

/** A path piece; as it stands when its percent signs mean nothing. */
function decoded(piece: string): string {
  try {
    return decodeURIComponent(piece);
  } catch {
    return piece;
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
