import { chmodSync, mkdirSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeMount } from '../node-mount.js';
import type { Sandbox } from '../types.js';
import type { OpenSandbox } from './open.js';

const node = nodeMount();

const CLIENT = `
const http = require('node:http');
const get = (body) => new Promise((resolve, reject) => {
  const req = http.request({ port: 8080, method: 'POST', path: '/x', agent: false }, (res) => {
    let n = 0; res.on('data', (d) => { n += d.length; }); res.on('end', () => resolve(n)); res.on('error', reject);
  });
  req.on('error', reject); req.end(body);
});
(async () => {
  const sizes = await Promise.all(Array.from({ length: 32 }, (_, i) => get('y'.repeat(i * 50000))));
  console.log(JSON.stringify(sizes));
})().catch((error) => { console.log(error.code); process.exit(1); });
`;

export function network(open: OpenSandbox, host: string): void {
  describe('network', () => {
    const directory = join(host, 'model');
    const socket = join(directory, 'model.sock');
    let server: Server;
    let sandbox: Sandbox;
    const listen = async (openAfter = 0): Promise<Server> => {
      const echo = createServer((req, res) => {
        const pieces: Buffer[] = [];
        req.on('data', (piece: Buffer) => pieces.push(piece));
        req.on('end', () => res.end(Buffer.concat(pieces)));
      });
      await new Promise<void>((resolve) => echo.listen(socket, resolve));
      chmodSync(socket, 0); // whoever comes now is refused by the file's mode
      await new Promise((resolve) => setTimeout(resolve, openAfter));
      chmodSync(socket, 0o666);
      return echo;
    };
    const close = (): Promise<unknown> => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    };
    beforeAll(async () => {
      mkdirSync(directory);
      server = await listen();
      sandbox = await open({ network: { kind: 'model-socket', directory }, mounts: [node.mount] });
    });
    afterAll(close);

    it('leads the model URL to the socket, many connections with large bodies at once', async () => {
      expect(sandbox.modelUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
      const { stdout, stderr } = await sandbox.run([node.argv0, '-e', CLIENT]);
      expect(stderr).toBe('');
      expect(JSON.parse(stdout)).toEqual(Array.from({ length: 32 }, (_, i) => i * 50000));
    });

    it('keeps the way back open when the client has finished sending', async () => {
      const script = `
        const socket = require('node:net').connect({ port: 8080, allowHalfOpen: true });
        socket.end('POST / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Length: 5\\r\\n\\r\\nhello');
        socket.on('data', (d) => process.stdout.write(d));`;
      expect((await sandbox.run([node.argv0, '-e', script], { timeout: 5000 })).stdout).toMatch(/hello\s*$/);
    });

    it('waits for a gateway that is being restarted', async () => {
      await close();
      const pending = sandbox.run([node.argv0, '-e', CLIENT], { timeout: 20_000 });
      await new Promise((resolve) => setTimeout(resolve, 500));
      server = await listen(300);
      expect(JSON.parse((await pending).stdout)).toHaveLength(32);
    });

    it('reaches nothing else: no host listener, no outside address', async () => {
      const listener = createTcpServer((peer) => peer.end('reached'));
      await new Promise<void>((resolve) => listener.listen(0, '0.0.0.0', resolve));
      const { port } = listener.address() as AddressInfo;
      const script = `
        const net = require('node:net');
        const attempt = (host, port) => new Promise((resolve) => {
          const socket = net.connect({ host, port, timeout: 2000 });
          socket.on('connect', () => resolve('connected'));
          socket.on('timeout', () => resolve('timeout'));
          socket.on('error', (error) => resolve(error.code));
        });
        Promise.all([attempt('127.0.0.1', ${port}), attempt('192.0.2.1', 80), attempt('8.8.8.8', 53), attempt('example.com', 80)])
          .then((all) => { console.log(all.join(' ')); process.exit(0); });`;
      const { stdout } = await sandbox.run([node.argv0, '-e', script]);
      listener.close();
      const [local, testNet, outside, name] = stdout.trim().split(' ');
      expect(local).toBe('ECONNREFUSED');
      expect([testNet, outside]).toEqual(['ENETUNREACH', 'ENETUNREACH']);
      expect(name).toMatch(/^(EAI_AGAIN|ENOTFOUND|ECONNREFUSED)$/);
    });

    it('has no model port without a model socket', async () => {
      const closed = await open({ mounts: [node.mount] });
      expect(closed.modelUrl).toBeNull();
      expect((await closed.run([node.argv0, '-e', CLIENT])).stdout.trim()).toBe('ECONNREFUSED');
    });
  });
}
