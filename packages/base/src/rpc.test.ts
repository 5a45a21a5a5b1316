import { Agent, createServer, request, type IncomingHttpHeaders } from 'node:http';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TreewardError } from './errors.js';
import { rpcClient, serveRpc, type Handlers, type RpcClient, type RpcServer } from './rpc.js';

let directory: string;
let socket: string;
let client: RpcClient;
const servers: RpcServer[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tw-rpc-'));
  socket = join(directory, 'deep', 'x.sock');
  client = rpcClient(socket);
});
afterEach(async () => {
  client.close();
  for (const server of servers.splice(0)) await server.close();
  rmSync(directory, { recursive: true, force: true });
});

async function serve(handlers: Handlers): Promise<RpcServer> {
  const server = await serveRpc(socket, handlers);
  servers.push(server);
  return server;
}

describe('rpc', () => {
  it('carries JSON both ways, many calls at once', async () => {
    await serve({
      double: async ({ n }: { n: number }) => ({ n: 2 * n }),
      nothing: async () => undefined,
      echo: async (input: unknown) => input,
    });
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, n) => client.call<{ n: number }>('double', { n })),
    );
    expect(answers.map(({ n }) => n)).toEqual(Array.from({ length: 300 }, (_, n) => 2 * n));
    expect(await client.call('nothing')).toBeNull();
    const big = { text: 'ü'.repeat(3_000_000) };
    expect(await client.call('echo', big)).toEqual(big);
  });

  it('gives the caller the error of the handler, code, hints and data kept', async () => {
    await serve({
      fail: async () => {
        throw new TreewardError('X_E_Y', 'why', { hints: ['do z'], data: { a: 1 } });
      },
      crash: async () => {
        throw new TypeError('oops');
      },
    });
    await expect(client.call('fail')).rejects.toMatchObject({
      code: 'X_E_Y',
      message: 'why',
      hints: ['do z'],
      data: { a: 1 },
    });
    await expect(client.call('crash')).rejects.toMatchObject({ code: 'E_UNEXPECTED' });
    for (const method of ['missing', 'toString', '__proto__']) {
      await expect(client.call(method)).rejects.toMatchObject({ code: 'RPC_E_METHOD' });
    }
  });

  it('says that nobody answers, at once or when the time is over', async () => {
    await expect(client.call('x')).rejects.toMatchObject({ code: 'RPC_E_UNREACHABLE' });
    const started = Date.now();
    await expect(client.call('x', {}, { retryFor: 250 })).rejects.toMatchObject({
      code: 'RPC_E_UNREACHABLE',
      message: expect.stringContaining(socket),
    });
    expect(Date.now() - started).toBeGreaterThanOrEqual(250);
  });

  it('waits for a peer that starts late, and finds it again after it died in the middle of a call', async () => {
    const early = client.call('who', {}, { retryFor: 20_000 });
    await new Promise((resolve) => setTimeout(resolve, 150));
    let reached: () => void = () => undefined;
    const inside = new Promise<void>((resolve) => (reached = resolve));
    const first = await serve({
      who: async () => 'first',
      hang: () => {
        reached();
        return new Promise(() => undefined);
      },
    });
    expect(await early).toBe('first');
    const cut = client.call('hang', {}, { retryFor: 20_000 });
    await inside;
    await first.close();
    await serve({ hang: async () => 'second' });
    expect(await cut).toBe('second');
  });

  it('takes over the socket file that a killed process left', async () => {
    await serve({ who: async () => 'old' });
    servers.splice(0); // as after kill -9: the file stays
    await serve({ who: async () => 'new' });
    expect(await rpcClient(socket).call('who')).toBe('new');
  });

  it('tells the handler when the caller gave up', async () => {
    let entered: () => void = () => undefined;
    const inside = new Promise<void>((resolve) => (entered = resolve));
    let noticed: (value: string) => void = () => undefined;
    const aborted = new Promise<string>((resolve) => (noticed = resolve));
    await serve({
      wait: (_input, { signal }) => {
        entered();
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            noticed('aborted');
            resolve(null);
          });
        });
      },
    });
    const abort = new AbortController();
    const call = client.call('wait', {}, { signal: abort.signal, retryFor: 20_000 });
    await inside;
    abort.abort();
    await expect(call).rejects.toMatchObject({ name: 'AbortError' });
    expect(await aborted).toBe('aborted');
  });

  it('never closes an idle connection by itself, which a caller could take for a dead peer', async () => {
    await serve({ ping: async () => 1 });
    const headers = await new Promise<IncomingHttpHeaders>((resolve, reject) => {
      const agent = new Agent({ keepAlive: true });
      const req = request({ socketPath: socket, path: '/ping', method: 'POST', agent }, (res) => {
        res.resume().on('end', () => {
          agent.destroy();
          resolve(res.headers);
        });
      });
      req.on('error', reject).end('null');
    });
    expect(headers.connection).toBe('keep-alive');
    expect(headers['keep-alive']).toBeUndefined(); // Node announces its time limit here
  });

  it('closes with calls in flight, and removes its socket', async () => {
    const server = await serve({ hang: () => new Promise(() => undefined) });
    const call = client.call('hang').catch((error: unknown) => error);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await server.close();
    expect(await call).toMatchObject({ code: 'RPC_E_UNREACHABLE' });
    expect(existsSync(socket)).toBe(false);
  });

  it('explains an answer that is no JSON, a path that is too long, a socket that cannot be made', async () => {
    const plain = createServer((_req, res) => res.end('<html>'));
    await new Promise<void>((resolve) => plain.listen(join(directory, 'p.sock'), resolve));
    const stranger = rpcClient(join(directory, 'p.sock'));
    await expect(stranger.call('x')).rejects.toMatchObject({ code: 'RPC_E_ANSWER' });
    stranger.close();
    await new Promise((resolve) => plain.close(resolve));

    const long = join(directory, 'x'.repeat(120));
    await expect(serveRpc(long, {})).rejects.toMatchObject({ code: 'RPC_E_PATH' });
    expect(() => rpcClient(long)).toThrow(expect.objectContaining({ code: 'RPC_E_PATH' }));
    writeFileSync(join(directory, 'file'), '');
    await expect(serveRpc(join(directory, 'file', 'x.sock'), {})).rejects.toThrow();
  });
});
