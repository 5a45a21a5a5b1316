import { mkdtempSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
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
