import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { TreewardError } from '@treeward/base';
import { presentsKey } from '@treeward/gateway';

/** Where one request goes: a rollout's socket, the key issued for it, and its path there. */
export interface FrontTarget {
  socketPath: string;
  key: string;
  path: string;
}

export interface FrontOptions {
  /** 0 takes a free one. */
  port: number;
  /** What a client must present as its API key; absent: any. */
  key?: string;
  /** Prometheus text at GET /metrics, for which no key is needed. @default not served */
  metrics?(): Promise<string>;
  /** Null: nothing is served at that path. */
  target(path: string, headers: IncomingHttpHeaders): Promise<FrontTarget | null>;
}

export interface Front {
  url: string;
  close(): Promise<void>;
}

const HOST = '127.0.0.1';

/** About one connection, not about the reply: the client's may be of an older HTTP that knows no chunks. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding']);

/**
 * A loopback port in front of the gateway's sockets, for clients outside sandboxes. Requests and replies pass byte for
 * byte; only the key is exchanged for the endpoint's own. @throws TreewardError FRONT_E_LISTEN
 */
export async function openFront(options: FrontOptions): Promise<Front> {
  const server = createServer((incoming, response) => {
    forward(incoming, response, options).catch(() => {
      if (!response.headersSent) refuse(response, 502, 'the gateway did not answer');
      response.destroy();
    });
  });
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new TreewardError('FRONT_E_LISTEN', `cannot listen on ${HOST}:${options.port}: ${cause.message}`, {
          cause,
          hints: ['choose another --port; 0 takes a free one'],
        }),
      ),
    );
    server.listen(options.port, HOST, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${HOST}:${port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  options: FrontOptions,
): Promise<void> {
  // A browser page on this machine can reach a loopback port; it cannot hide the name it used.
  if (!loopbackName(incoming.headers.host)) return refuse(response, 403, 'only loopback names are served');
  if (options.metrics && incoming.method === 'GET' && incoming.url === '/metrics') {
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' });
    return void response.end(await options.metrics());
  }
  if (options.key !== undefined && !presentsKey(incoming.headers, options.key)) {
    return refuse(response, 401, 'this key is not the one that was printed');
  }
  const target = await options.target(incoming.url ?? '/', incoming.headers);
  if (!target) return refuse(response, 404, `nothing is served at ${incoming.url}`);
  if (response.destroyed) return; // left in the meantime
  const { 'x-api-key': _, ...headers } = incoming.headers;
  const outgoing = httpRequest({
    // A connection of its own: one that is kept may be at its end when the next request takes it.
    agent: false,
    socketPath: target.socketPath,
    method: incoming.method,
    path: target.path,
    headers: { ...headers, authorization: `Bearer ${target.key}` },
  });
  // A client that leaves is the gateway's business: it must see the connection end.
  response.once('close', () => outgoing.destroy());
  await new Promise<void>((resolve, reject) => {
    outgoing.once('response', (reply) => {
      const passed = Object.entries(reply.headers).filter(([name]) => !HOP_BY_HOP.has(name));
      response.writeHead(reply.statusCode ?? 502, Object.fromEntries(passed));
      response.flushHeaders();
      reply.pipe(response);
      reply.once('error', reject);
      reply.once('close', resolve);
    });
    outgoing.once('error', (error) => (response.destroyed ? resolve() : reject(error)));
    incoming.pipe(outgoing);
  });
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }));
}

function loopbackName(host: string | undefined): boolean {
  return /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/.test(host ?? '');
}
