import { mkdtempSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openFront, type Front, type FrontOptions } from './front.js';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const thing of open.splice(0)) await thing.close();
});

/** A gateway socket that says what reached it. */
async function behind(): Promise<{ socketPath: string; left: Promise<void> }> {
  const socketPath = join(mkdtempSync(join(tmpdir(), 'front-')), 's');
  let leave = (): void => undefined;
  const left = new Promise<void>((resolve) => (leave = resolve));
  const server: Server = createServer((incoming, response) => {
    if (incoming.url === '/hang') return void incoming.once('close', leave);
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const { authorization, 'x-api-key': key } = incoming.headers;
      response.writeHead(418, { 'x-mark': 'yes' });
      response.end(
        JSON.stringify({ url: incoming.url, authorization, key, body: Buffer.concat(chunks).toString() }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  open.push(server);
  return { socketPath, left };
}

async function front(options: Partial<FrontOptions> = {}): Promise<{ front: Front; left: Promise<void> }> {
  const { socketPath, left } = await behind();
  const opened = await openFront({
    port: 0,
    target: (path) => Promise.resolve(path.startsWith('/no') ? null : { socketPath, key: 'inner', path }),
    ...options,
  });
  open.push(opened);
  return { front: opened, left };
}

/** What comes back to these bytes until the connection ends. */
const say = (opened: Front, bytes: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(Number(new URL(opened.url).port), '127.0.0.1');
    let received = '';
    socket.on('data', (piece) => (received += piece.toString()));
    socket.on('close', () => resolve(received));
    socket.write(bytes);
  });

describe('openFront', () => {
  it('passes method, path, body, status and headers, and exchanges the key', async () => {
    const { front: opened } = await front({ key: 'outer' });
    const reply = await fetch(`${opened.url}/v1/x?y=1`, {
      method: 'POST',
      body: 'hé',
      headers: { 'x-api-key': 'outer' },
    });
    expect(reply.status).toBe(418);
    expect(reply.headers.get('x-mark')).toBe('yes');
    expect(await reply.json()).toEqual({ url: '/v1/x?y=1', authorization: 'Bearer inner', body: 'hé' });
  });

  it('refuses a wrong key, another host name, and what leads nowhere', async () => {
    const { front: opened } = await front({ key: 'outer' });
    const status = async (path: string, headers: Record<string, string>): Promise<number> =>
      (await fetch(opened.url + path, { headers })).status;
    expect(await status('/v1/x', {})).toBe(401);
    expect(await status('/v1/x', { authorization: 'Bearer inner' })).toBe(401);
    expect(await status('/no', { authorization: 'Bearer outer' })).toBe(404);
    const named = await new Promise<number>((resolve) => {
      const port = new URL(opened.url).port;
      request({ host: '127.0.0.1', port, headers: { host: 'evil.example' } }, (reply) => {
        reply.resume();
        resolve(reply.statusCode!);
      }).end();
    });
    expect(named).toBe(403);
  });

  it('lets the gateway see that a client left', async () => {
    const { front: opened, left } = await front();
    const abort = new AbortController();
    const asked = fetch(`${opened.url}/hang`, { signal: abort.signal }).catch(() => 'gone');
    setTimeout(() => abort.abort(), 50);
    expect(await asked).toBe('gone');
    await left;
  });

  it('does not ask for a client that left before it was known where to', async () => {
    let asked = 0;
    const socketPath = join(mkdtempSync(join(tmpdir(), 'front-')), 's');
    const server = createServer((_, response) => response.end(String(asked++)));
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    open.push(server);
    const abort = new AbortController();
    const { front: opened } = await front({
      target: async (path) => {
        if (path === '/gone') {
          abort.abort();
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        return { socketPath, key: 'k', path };
      },
    });
    await expect(fetch(`${opened.url}/gone`, { signal: abort.signal })).rejects.toThrow();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await (await fetch(`${opened.url}/next`)).text()).toBe('0');
  });

  it('says no chunks to a client of HTTP/1.0', async () => {
    const { front: opened } = await front();
    const text = await say(opened, 'GET /v1/x HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n');
    const [head, body] = text.split('\r\n\r\n');
    expect(head).not.toMatch(/transfer-encoding/i);
    expect(JSON.parse(body!)).toMatchObject({ url: '/v1/x' });
  });

  it.each([
    ['two lengths', 'content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a length that hides a request', 'content-length: 0\r\ncontent-length: 9\r\n\r\n'],
  ])('passes nothing of a request with %s', async (_, rest) => {
    let asked = 0;
    const { front: opened } = await front({
      target: () => Promise.resolve((asked++, null)),
    });
    const text = await say(opened, `POST /v1/x HTTP/1.1\r\nhost: 127.0.0.1\r\n${rest}`);
    expect(text).toMatch(/^HTTP\/1.1 400 /);
    expect(asked).toBe(0);
  });

  it('says 502 when the gateway is away, and names a taken port', async () => {
    const { front: opened } = await front({
      target: (path) => Promise.resolve({ socketPath: '/nowhere/s', key: 'k', path }),
    });
    expect((await fetch(`${opened.url}/v1/x`)).status).toBe(502);
    const port = Number(new URL(opened.url).port);
    await expect(openFront({ port, target: () => Promise.resolve(null) })).rejects.toMatchObject({
      code: 'FRONT_E_LISTEN',
    });
  });
});
