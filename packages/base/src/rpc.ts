import { existsSync, mkdirSync, unlinkSync } from 'node:fs';
import { Agent, createServer, request, type Server } from 'node:http';
import { dirname } from 'node:path';
import { fromPlainError, toPlainError, TreewardError, type PlainError } from './errors.js';

/**
 * Typed calls between Treeward's own processes: JSON over HTTP on a unix socket. A process that died and came back
 * answers on the same path, so callers need no re-wiring. Large arrays go by file (arrays.ts), never in here.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Handlers = Record<string, (input: any, context: { signal: AbortSignal }) => Promise<unknown>>;

export interface RpcServer {
  close(): Promise<void>;
}

/** What sockaddr_un holds; longer paths are cut silently by some Node versions. */
const LONGEST_PATH = 107;

function checkPath(socketPath: string): void {
  const length = Buffer.byteLength(socketPath);
  if (length <= LONGEST_PATH) return;
  throw new TreewardError(
    'RPC_E_PATH',
    `socket path of ${length} bytes, at most ${LONGEST_PATH} work: ${socketPath}`,
    { hints: ['use a run directory with a shorter path'] },
  );
}

/** @throws TreewardError RPC_E_PATH when the path is too long for a unix socket, RPC_E_LISTEN when it cannot be opened */
export async function serveRpc(socketPath: string, handlers: Handlers): Promise<RpcServer> {
  checkPath(socketPath);
  mkdirSync(dirname(socketPath), { recursive: true });
  if (existsSync(socketPath)) unlinkSync(socketPath);
  const server: Server = createServer((req, res) => {
    const abort = new AbortController();
    res.on('close', () => {
      if (!res.writableEnded) abort.abort();
    });
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const name = (req.url ?? '/').slice(1);
      // `toString` and its like are nobody's methods.
      const handler = name in Object.prototype ? undefined : handlers[name];
      const answer = async (): Promise<unknown> => {
        if (!handler) throw new TreewardError('RPC_E_METHOD', `no method ${name} on ${socketPath}`);
        return handler(chunks.length ? JSON.parse(Buffer.concat(chunks).toString('utf8')) : undefined, {
          signal: abort.signal,
        });
      };
      answer().then(
        (value) => res.writeHead(200).end(JSON.stringify(value ?? null)),
        (error: unknown) => res.writeHead(500).end(JSON.stringify(toPlainError(error))),
      );
    });
  });
  server.requestTimeout = 0;
  // An idle connection that we closed just as the client uses it again would look like a peer that died.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      reject(
        new TreewardError('RPC_E_LISTEN', `cannot listen on ${socketPath}: ${cause.message}`, { cause }),
      );
    });
    server.listen(socketPath, resolve);
  });
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Milliseconds to keep trying while nobody listens or the peer dies mid-call (a restarting process). @default 0 */
  retryFor?: number;
}

export interface RpcClient {
  /** `null` stands for a handler's `undefined`, as in any JSON. */
  call<T>(method: string, input?: unknown, options?: CallOptions): Promise<T>;
  close(): void;
}

/**
 * @throws TreewardError RPC_E_UNREACHABLE when nobody answers in time, RPC_E_ANSWER for an answer that is no JSON, RPC_E_PATH;
 * an AbortError when `signal` fires; otherwise the peer's own error, code kept
 */
export function rpcClient(socketPath: string): RpcClient {
  checkPath(socketPath);
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const once = <T>(method: string, body: string, signal?: AbortSignal): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const req = request(
        { socketPath, path: `/${method}`, method: 'POST', agent, ...(signal ? { signal } : {}) },
        (res) => {
          const chunks: Buffer[] = [];
          res.on('data', (chunk: Buffer) => chunks.push(chunk));
          res.on('error', reject);
          res.on('end', () => {
            if (!res.complete) return reject(Object.assign(new Error('answer cut'), { code: 'ECONNRESET' }));
            const text = Buffer.concat(chunks).toString('utf8');
            let value: unknown;
            try {
              value = JSON.parse(text);
            } catch {
              const start = text.slice(0, 200);
              return reject(
                new TreewardError('RPC_E_ANSWER', `${socketPath} answered ${method} with no JSON: ${start}`),
              );
            }
            if (res.statusCode === 200) resolve(value as T);
            else reject(fromPlainError(value as PlainError));
          });
        },
      );
      req.on('error', reject);
      req.end(body);
    });
  const transient = new Set(['ECONNREFUSED', 'ENOENT', 'ECONNRESET', 'EPIPE']);
  return {
    async call<T>(method: string, input?: unknown, options: CallOptions = {}): Promise<T> {
      const body = JSON.stringify(input ?? null);
      const deadline = Date.now() + (options.retryFor ?? 0);
      for (;;) {
        try {
          return await once<T>(method, body, options.signal);
        } catch (error) {
          const code = (error as NodeJS.ErrnoException).code ?? '';
          if (!transient.has(code)) throw error;
          if (Date.now() >= deadline) {
            throw new TreewardError(
              'RPC_E_UNREACHABLE',
              `${method}: nobody answers on ${socketPath} (${code})`,
              { cause: error },
            );
          }
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }
    },
    close: () => agent.destroy(),
  };
}
