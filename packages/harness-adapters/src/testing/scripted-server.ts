import { mkdtempSync, rmSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  dialectForPath,
  encodeServerEvent,
  type CanonicalRequest,
  type Reply,
  type ReplyPart,
} from '@treeward/messages';

/** What the model answers: a turn, or an HTTP error. */
export type Scripted = readonly ReplyPart[] | { status: number };

export interface ScriptedServer {
  /** Holds `model.sock`. */
  readonly directory: string;
  /** Every model call as it arrived, errors included, and its raw body. */
  readonly calls: { request: CanonicalRequest; body: string; key: string }[];
  close(): Promise<void>;
}

/** A model that plays a script, on a unix socket as the gateway has it. After the script every call fails with 400. */
export async function scriptedServer(script: readonly Scripted[]): Promise<ScriptedServer> {
  const directory = mkdtempSync(join(tmpdir(), 'scripted-'));
  const calls: ScriptedServer['calls'] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const dialect = dialectForPath(incoming.url!.replace(/\?.*/, ''));
      if (incoming.method !== 'POST' || !dialect) {
        response.writeHead(incoming.method === 'HEAD' ? 200 : 404).end();
        return;
      }
      const body = Buffer.concat(chunks).toString();
      const request = dialect.parse(JSON.parse(body));
      const { authorization = '', 'x-api-key': apiKey } = incoming.headers;
      calls.push({ request, body, key: String(apiKey ?? authorization.replace('Bearer ', '')) });
      const next = script[calls.length - 1] ?? { status: 400 };
      if ('status' in next) {
        response.writeHead(next.status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(dialect.error(next.status, 'scripted')));
        return;
      }
      const { model } = request;
      const id = `reply_${calls.length}`;
      const usage = { promptTokens: 100, completionTokens: 10 };
      const parts = next.map((part, index) =>
        part.type === 'text' ? part : { ...part, id: `call_${calls.length}_${index}` },
      );
      const stop = parts.some((part) => part.type === 'tool_call') ? 'tool_calls' : 'stop';
      const reply: Reply = { id, model, parts, stop, usage };
      if (!request.stream) {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify(dialect.render(reply)));
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const events = [...dialect.opening({ id, model, promptTokens: 100 }), ...dialect.events(reply)];
      response.end(events.map(encodeServerEvent).join(''));
    });
  });
  const socket = join(directory, 'model.sock');
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  await chmod(directory, 0o755);
  await chmod(socket, 0o666);
  return {
    directory,
    calls,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
