import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { EndpointInfo } from '../types.js';

export interface OfficialClients {
  anthropic: Anthropic;
  openai: OpenAI;
  close(): Promise<void>;
}

/** The vendors' own clients, without retries. They speak TCP: a forwarder takes their bytes to the rollout's socket. */
export async function officialClients(endpoint: EndpointInfo, key = endpoint.key): Promise<OfficialClients> {
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(endpoint.socketPath);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    anthropic: new Anthropic({ baseURL: origin, apiKey: key, authToken: null, maxRetries: 0 }),
    openai: new OpenAI({ baseURL: `${origin}/v1`, apiKey: key, maxRetries: 0 }),
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
