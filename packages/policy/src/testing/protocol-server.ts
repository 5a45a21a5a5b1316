import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { textOf } from './completions-server.js';

export interface Seen {
  path: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown>;
}

/** What to answer next. `hang`: nothing at all; `drop`: the connection is cut. */
export type Answer = { status: number; body: unknown } | 'hang' | 'drop';

/**
 * Protocol fake: answers from a prepared list (the last one again and again) and keeps what it was asked. No model behind it.
 */
export async function serveAnswers(): Promise<{
  url: string;
  server: Server;
  seen: Seen[];
  answers: Answer[];
}> {
  const seen: Seen[] = [];
  const answers: Answer[] = [];
  const server = createServer((request, response) => {
    void textOf(request).then((text) => {
      seen.push({
        path: request.url ?? '',
        headers: request.headers,
        body: JSON.parse(text) as Record<string, unknown>,
      });
      const answer = answers.length > 1 ? answers.shift()! : (answers[0] ?? 'drop');
      if (answer === 'hang') return;
      if (answer === 'drop') {
        request.socket.destroy();
        return;
      }
      response.writeHead(answer.status, { 'content-type': 'application/json', 'retry-after-ms': '1' });
      response.end(JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, seen, answers };
}
