import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Seen {
  url: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown>;
}

export interface Answer {
  status?: number;
  body?: unknown;
  /** Sent as it is instead of `body`. */
  text?: string;
  /** Never answers. */
  hang?: boolean;
}

/** A server on this machine that gives `answers` in order (the last one again and again) and remembers what it was asked. */
export async function judgeServer(
  answers: readonly Answer[],
): Promise<{ url: string; seen: Seen[]; close(): Promise<void> }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
    request.on('end', () => {
      const answer = answers[Math.min(seen.length, answers.length - 1)] ?? {};
      seen.push({
        url: request.url ?? '',
        headers: request.headers,
        body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
      });
      if (answer.hang) return;
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' });
      response.end(answer.text ?? JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

export const openaiAnswer = (text: string): Answer => ({
  body: {
    choices: [{ message: { role: 'assistant', content: text } }],
    usage: { prompt_tokens: 1000, completion_tokens: 100 },
  },
});

export const anthropicAnswer = (text: string): Answer => ({
  body: { content: [{ type: 'text', text }], usage: { input_tokens: 1000, output_tokens: 100 } },
});
