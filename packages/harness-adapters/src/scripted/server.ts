import { mkdtempSync, rmSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import {
  dialectForPath,
  encodeServerEvent,
  type CanonicalRequest,
  type Dialect,
  type Reply,
  type ReplyPart,
} from '@treeward/messages';
import type { Identity } from '@treeward/telemetry';
import type { HarnessAdapter } from '../types.js';
import { say, scriptView, type Script, type Scripted } from './script.js';

export interface ScriptedCall {
  path: string;
  /** Lower-case names. */
  headers: Readonly<Record<string, string>>;
  request: CanonicalRequest;
  body: string;
  key: string;
  identity: Identity;
  answered: Scripted;
  /** Milliseconds since the epoch: arrival, and when the reply was sent. */
  start: number;
  end: number;
}

export interface ScriptedServer {
  /** Holds `model.sock`. */
  readonly directory: string;
  /** Every model call in order of arrival, refused ones included. */
  readonly calls: ScriptedCall[];
  close(): Promise<void>;
}

/**
 * A model that plays a script, on a unix socket as the gateway has it. A request that is no part of the work (a title) is
 * answered beside the script.
 */
export async function scriptedServer(adapter: HarnessAdapter, script: Script): Promise<ScriptedServer> {
  const directory = mkdtempSync(join(tmpdir(), 'scripted-'));
  const calls: ScriptedCall[] = [];
  let arrivals = 0;

  async function answer(
    dialect: Dialect,
    path: string,
    body: Buffer,
    from: IncomingHttpHeaders,
    to: ServerResponse,
  ) {
    const text = (await decode(body, from['content-encoding'])).toString();
    const request = dialect.parse(JSON.parse(text));
    const headers = plainHeaders(from);
    const identity = adapter.identify?.({ headers, messages: request.messages, tools: request.tools }) ?? {};
    const answered =
      identity.requestClass === 'side'
        ? say('A title')
        : script(scriptView(adapter.canonicalise(request.messages), arrivals++));
    const key = headers['x-api-key'] ?? (headers['authorization'] ?? '').replace('Bearer ', '');
    const call = { path, headers, request, body: text, key, identity, answered, start: Date.now(), end: 0 };
    calls.push(call);
    send(dialect, request, answered, calls.length, to);
    call.end = Date.now();
  }

  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const path = incoming.url?.replace(/\?.*/, '') ?? '';
      const dialect = dialectForPath(path);
      if (incoming.method !== 'POST' || !dialect) {
        response.writeHead(incoming.method === 'HEAD' ? 200 : 404).end();
        return;
      }
      answer(dialect, path, Buffer.concat(chunks), incoming.headers, response).catch((error: unknown) => {
        response.writeHead(400).end(JSON.stringify(dialect.error(400, String(error))));
      });
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

function send(
  dialect: Dialect,
  request: CanonicalRequest,
  what: Scripted,
  n: number,
  to: ServerResponse,
): void {
  const stream = { 'content-type': 'text/event-stream' };
  if ('drop' in what) {
    to.writeHead(200, stream).write(': here\n\n', () => to.destroy());
    return;
  }
  if ('status' in what) {
    const { status, retryAfter } = what;
    const headers = {
      'content-type': 'application/json',
      ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    };
    to.writeHead(status, headers).end(JSON.stringify(dialect.error(status, 'scripted')));
    return;
  }
  const parts = what.map((part, index): ReplyPart =>
    part.type === 'text' ? part : { ...part, id: `call_${n}_${index}` },
  );
  const reply: Reply = {
    id: `reply_${n}`,
    model: request.model,
    parts,
    stop: parts.some(({ type }) => type === 'tool_call') ? 'tool_calls' : 'stop',
    usage: { promptTokens: 100, completionTokens: 10 },
    ...(request.form && { form: request.form }),
  };
  if (!request.stream) {
    to.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(dialect.render(reply)));
    return;
  }
  const { id, model } = reply;
  const events = [...dialect.opening({ id, model, promptTokens: 100 }), ...dialect.events(reply)];
  to.writeHead(200, stream).end(events.map(encodeServerEvent).join(''));
}

const decode = async (body: Buffer, encoding: string | undefined): Promise<Buffer> =>
  encoding === 'gzip' ? promisify(gunzip)(body) : body;

const plainHeaders = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
