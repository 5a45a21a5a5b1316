import { fork, type ChildProcess } from 'node:child_process';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { BodySize } from './bench-load.js';
import { Conversation, REPLY_TEXT } from './bench-load.js';
import type { Looked, Opened, Order } from './gateway-server.bench.js';

/** A server process and what it is asked for, one thing at a time. */
export class BenchServer {
  readonly #child: ChildProcess;

  constructor() {
    this.#child = fork(fileURLToPath(new URL('./gateway-server.bench.js', import.meta.url)), [], {
      execArgv: ['--expose-gc'],
    });
  }

  open(order: Order): Promise<Opened> {
    return this.#ask<Opened>(order);
  }

  async memory(): Promise<number> {
    return (await this.#ask<{ bytes: number }>({ kind: 'memory' })).bytes;
  }

  look(): Promise<Looked> {
    return this.#ask<Looked>({ kind: 'look' });
  }

  async stop(): Promise<void> {
    await this.#ask({ kind: 'stop' });
    this.#child.disconnect();
    await new Promise((resolve) => this.#child.once('exit', resolve));
  }

  #ask<T>(order: Order): Promise<T> {
    return new Promise((resolve, reject) => {
      const died = (): void => reject(new Error('the server process died'));
      this.#child.once('exit', died);
      this.#child.once('message', (value) => {
        this.#child.off('exit', died);
        resolve(value as T);
      });
      this.#child.send(order);
    });
  }
}

export interface Answer {
  status: number;
  type: string;
  text: string;
}

/** One client of one endpoint, on one connection that it keeps. */
export class BenchClient {
  readonly #endpoint: Opened['endpoints'][number];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #size: BodySize;
  readonly #stream: boolean;
  #conversation: Conversation;

  constructor(endpoint: Opened['endpoints'][number], size: BodySize, stream: boolean, seed: number) {
    this.#endpoint = endpoint;
    this.#size = size;
    this.#stream = stream;
    this.#conversation = new Conversation(size, stream, seed);
  }

  /** Another conversation from its first turn on. */
  restart(seed: number): void {
    this.#conversation = new Conversation(this.#size, this.#stream, seed);
  }

  /** The next turn; milliseconds from the first byte sent to the last one received. */
  async turn(): Promise<{ ms: number; answer: Answer }> {
    const body = this.#conversation.next();
    const start = performance.now();
    const answer = await this.#send(body);
    return { ms: performance.now() - start, answer };
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(body: Buffer): Promise<Answer> {
    const { socketPath, key } = this.#endpoint;
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          socketPath,
          method: 'POST',
          path: '/v1/messages',
          agent: this.#agent,
          headers: { 'content-type': 'application/json', 'content-length': body.length, 'x-api-key': key },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (text += chunk));
          response.on('error', reject);
          response.on('end', () => {
            resolve({ status: response.statusCode!, type: response.headers['content-type']!, text });
          });
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  }
}

export interface Load {
  /** Milliseconds of each rollout's first turn, and of the later ones. */
  cold: number[];
  warm: number[];
  errors: number;
  /** Of the warm part. */
  seconds: number;
  last: Answer;
}

export interface Pace {
  /** Turns of a conversation that is not measured, so that both servers' code is compiled when it counts. @default 0 */
  warmUp?: number;
  turns: number;
  /** Mean milliseconds that a client takes between a reply and its next turn; 0: as fast as it can. */
  pauseMs: number;
  /** Called between the first turns and the rest. */
  onWarm(): Promise<unknown>;
}

/** Every client does its turns one after the other, all clients at once: first one turn each, then the rest. */
export async function drive(clients: readonly BenchClient[], pace: Pace): Promise<Load> {
  const load: Load = { cold: [], warm: [], errors: 0, seconds: 0, last: { status: 0, type: '', text: '' } };
  const one = async (client: BenchClient, times: number[]): Promise<void> => {
    try {
      const { ms, answer } = await client.turn();
      times.push(ms);
      load.last = answer;
      // Streams say it in pieces: whole words are enough to tell the reply from an error.
      if (answer.status !== 200 || !answer.text.includes(REPLY_TEXT.slice(0, 6))) load.errors++;
    } catch {
      load.errors++;
    }
  };
  const warmUp = pace.warmUp ?? 0;
  await Promise.all(
    clients.map(async (client, seed) => {
      for (let turn = 0; turn < warmUp; turn++) await one(client, []);
      if (warmUp > 0) client.restart(clients.length + seed);
    }),
  );
  await Promise.all(clients.map((client) => one(client, load.cold)));
  await pace.onWarm();
  const start = performance.now();
  await Promise.all(
    clients.map(async (client) => {
      for (let turn = 1; turn < pace.turns; turn++) {
        if (pace.pauseMs > 0) await sleep(2 * pace.pauseMs * Math.random());
        await one(client, load.warm);
      }
    }),
  );
  load.seconds = (performance.now() - start) / 1000;
  return load;
}
