import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Dialect } from '@treeward/messages';
import { Exchange, type Outcome } from '../exchange.js';

export interface Heard {
  status: number;
  bytes: Buffer;
  /** The connection ended before the answer did. */
  cut: boolean;
}

export interface SseServer {
  /** One exchange: what `play` does on our side, and what the client heard. `onData` sees all that came so far. */
  exchange(
    dialect: Dialect,
    play: (exchange: Exchange) => Promise<Outcome>,
    onData?: (bytes: Buffer, response: IncomingMessage) => void,
  ): Promise<{ outcome: Outcome; heard: Heard }>;
  close(): Promise<void>;
}

/** A server that is only its exchanges: without a policy, a record or a key. */
export async function sseServer(): Promise<SseServer> {
  const directory = mkdtempSync(join(tmpdir(), 'tw-sse-'));
  const socketPath = join(directory, 's.sock');
  let answer: ((exchange: (dialect: Dialect) => Exchange) => void) | null = null;
  const server = createServer((_, response) => answer!((dialect) => new Exchange(response, dialect)));
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return {
    async exchange(dialect, play, onData) {
      const outcome = new Promise<Outcome>((resolve, reject) => {
        answer = (of) => play(of(dialect)).then(resolve, reject);
      });
      const heard = await hear(socketPath, onData);
      return { outcome: await outcome, heard };
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(directory, { recursive: true });
    },
  };
}

function hear(
  socketPath: string,
  onData: (bytes: Buffer, response: IncomingMessage) => void = () => undefined,
): Promise<Heard> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0);
    const asked = request({ socketPath, agent: false });
    asked.on('error', () => resolve({ status: 0, bytes, cut: true }));
    asked.on('response', (response) => {
      response.on('data', (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk]);
        onData(bytes, response);
      });
      response.on('error', () => undefined);
      response.on('close', () => resolve({ status: response.statusCode!, bytes, cut: !response.complete }));
    });
    asked.end();
  });
}
