import type { ServerResponse } from 'node:http';
import { encodeServerEvent, type Dialect, type Reply, type ReplyMeta } from '@treeward/messages';
import type { CallEnd } from '@treeward/telemetry';

export type Outcome = Pick<CallEnd, 'firstByte' | 'delivery' | 'cause' | 'status'>;

export interface ExchangeTiming {
  /** Milliseconds without a reply before the stream is opened; until then an error still gets its own status. */
  openAfterMs: number;
  /** Milliseconds between signs of life after that. */
  keepAliveMs: number;
}

export type Drop = 'drop-before' | 'drop-mid';

/** Status in the record when nobody was there to be answered. */
const CLIENT_LEFT = 499;

/**
 * The client's side of one call: holds the connection while the reply is made, sends it in one go, and knows what
 * became of it. A stream is opened and kept warm with events that carry nothing of the reply.
 */
export class Exchange {
  readonly #response: ServerResponse;
  readonly #dialect: Dialect;
  /** Set when the client asked for a stream. */
  #stream: ReplyMeta | null = null;
  #beats = 0;
  #timer: NodeJS.Timeout | undefined;
  #endedBy: 'client' | 'gateway' | null = null;
  #finished = false;

  constructor(response: ServerResponse, dialect: Dialect) {
    this.#response = response;
    this.#dialect = dialect;
    if (response.destroyed) this.#endedBy = 'client';
    response.on('error', () => undefined); // 'close' follows and says all that matters
    response.once('close', () => {
      clearTimeout(this.#timer);
      if (!this.#finished) this.#endedBy ??= 'client';
    });
  }

  get clientGone(): boolean {
    return this.#endedBy === 'client';
  }

  /** From now on the client may wait. What is said here about the reply opens the stream, if it is one. */
  hold({ stream, ...meta }: ReplyMeta & { stream: boolean }, timing: ExchangeTiming): void {
    if (!stream || this.#endedBy) return;
    const opened = { ...meta, created: Math.floor(Date.now() / 1000) };
    this.#stream = opened;
    const beat = (): void => {
      if (!this.#response.headersSent) this.#open(opened);
      else this.#response.write(encodeServerEvent(this.#dialect.keepAlive(opened, this.#beats++)));
      this.#timer = setTimeout(beat, timing.keepAliveMs);
    };
    this.#timer = setTimeout(beat, timing.openAfterMs);
  }

  async reply(reply: Reply, drop: Drop | null = null): Promise<Outcome> {
    clearTimeout(this.#timer);
    if (drop === 'drop-before') this.cut();
    if (this.#endedBy) return this.#undelivered();
    if (this.#stream) this.#open(this.#stream);
    const content = this.#stream
      ? this.#dialect
          .events({ ...reply, created: this.#stream.created! }, this.#beats)
          .map(encodeServerEvent)
          .join('')
      : this.#head(200, this.#dialect.render(reply));
    const firstByte = Date.now();
    if (drop === 'drop-mid') {
      await new Promise((resolve) => this.#response.write(content.slice(0, content.length / 2), resolve));
      this.cut();
      return { firstByte, delivery: 'partial', cause: 'gateway', status: 200 };
    }
    if (await this.#end(content)) return { firstByte, delivery: 'complete', cause: 'done', status: 200 };
    return { firstByte, delivery: 'partial', cause: this.#endedBy ?? 'client', status: 200 };
  }

  /** An error instead of a reply. `body` overrides the dialect's plain form of `message`. */
  async fail(
    status: number,
    message: string,
    options: { cause: CallEnd['cause']; body?: unknown; retry?: boolean },
  ): Promise<Outcome> {
    clearTimeout(this.#timer);
    if (this.#endedBy)
      return { ...this.#undelivered(), ...(options.cause === 'engine' && { cause: 'engine' }) };
    const body = options.body ?? this.#dialect.error(status, message);
    if (this.#stream && options.body !== undefined && this.#dialect.contextExceededInStream) {
      this.#open(this.#stream);
    }
    if (this.#stream && this.#response.headersSent) {
      await this.#end(
        this.#dialect.errorEvents(body, this.#stream, this.#beats).map(encodeServerEvent).join(''),
      );
    } else {
      // Both vendors' clients look at this header before they try again.
      if (options.retry === false) this.#response.setHeader('x-should-retry', 'false');
      await this.#end(this.#head(status, body));
    }
    return { firstByte: null, delivery: 'none', cause: options.cause, status };
  }

  /** Our own end of the connection. */
  cut(): void {
    this.#endedBy ??= 'gateway';
    clearTimeout(this.#timer);
    this.#response.destroy();
  }

  #undelivered(): Outcome {
    const status = this.#response.headersSent ? 200 : CLIENT_LEFT;
    return { firstByte: null, delivery: 'none', cause: this.#endedBy ?? 'client', status };
  }

  #open(meta: ReplyMeta): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
    });
    this.#response.write(this.#dialect.opening(meta).map(encodeServerEvent).join(''));
  }

  /** Sets the head of a JSON answer and gives its body. */
  #head(status: number, body: unknown): string {
    const text = JSON.stringify(body);
    this.#response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    });
    return text;
  }

  /** True when everything was handed to the connection. */
  #end(content: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.#response.once('finish', () => {
        this.#finished = true;
        resolve(true);
      });
      this.#response.once('close', () => resolve(this.#finished));
      this.#response.end(content);
    });
  }
}
