import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';

export interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
  json: any; // eslint-disable-line @typescript-eslint/no-explicit-any
  /** The connection ended before the answer did. */
  cut: boolean;
}

export interface Ask {
  method?: string;
  path?: string;
  key?: string | null;
  headers?: Record<string, string>;
  body?: unknown;
  onRequest?: (request: ClientRequest) => void;
  onData?: (text: string) => void;
}

/** One request over the unix socket. Rejects when the connection ends before the head of an answer. */
export function ask(socketPath: string, options: Ask = {}): Promise<Answer> {
  const { method = 'POST', path = '/v1/messages', key = null, headers = {}, body } = options;
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      socketPath,
      method,
      path,
      agent: false,
      headers: { 'content-type': 'application/json', ...(key !== null && { 'x-api-key': key }), ...headers },
    });
    request.on('error', reject);
    request.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
        options.onData?.(text);
      });
      response.on('error', () => undefined);
      response.on('close', () => {
        let json: unknown = null;
        try {
          json = JSON.parse(text);
        } catch {
          // a stream, or nothing
        }
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          json,
          cut: !response.complete,
        });
      });
    });
    options.onRequest?.(request);
    request.end(body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body));
  });
}

/** Data of every event of a stream; comments are left out. */
export function eventsOf(text: string): any[] /* eslint-disable-line @typescript-eslint/no-explicit-any */ {
  return text
    .split('\n\n')
    .flatMap((block) => block.split('\n').filter((line) => line.startsWith('data: ')))
    .map((line) => (line === 'data: [DONE]' ? '[DONE]' : JSON.parse(line.slice(6))));
}
