import type { ServerResponse } from 'node:http';
import {
  encodeServerEvent,
  type Dialect,
  type Reply,
  type ReplyMeta,
  type ServerEvent,
} from '@treeward/messages';
import type { CallEnd } from '@treeward/telemetry';

export type Outcome = Pick<CallEnd, 'firstByte' | 'delivery' | 'cause' | 'status' | 'sent'>;

export interface ExchangeTiming {
  /** Milliseconds without a reply before the stream is opened; until then an error still gets its own status. */
  openAfterMs: number;
  /** Milliseconds between signs of life after that. */
  keepAliveMs: number;
}

export type Drop = 'drop-before' | 'drop-mid';

/** Status in the record when nobody was there to be answered. */
const CLIENT_LEFT = 499;

/** Bytes of a reply that are handed over at once: the grain of what is known about a client that leaves in the middle. */
const PIECE = 8192;

/** Text that goes out at once, and how many events of the reply end in it. */
interface Piece {
  text: string;
  events: number;
}

/**
 * The client's side of one call: holds the connection while the reply is made, sends it as fast as the client takes it,
 * and knows what became of it. A stream is opened and kept warm with events that carry nothing of the reply.
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
  readonly #sent = { bytes: 0, events: 0 };
  #closed = false;
  /** Ends the waiting for the connection, which takes nothing any more. */
  #onClose: (() => void)[] = [];

  constructor(response: ServerResponse, dialect: Dialect) {
    this.#response = response;
    this.#dialect = dialect;
    if (response.destroyed) this.#endedBy = 'client';
    response.on('error', () => undefined); // 'close' follows and says all that matters
    response.once('close', () => {
      this.#closed = true;
      clearTimeout(this.#timer);
      if (!this.#finished) this.#endedBy ??= 'client';
      for (const ended of this.#onClose) ended();
    });
  }

  get clientGone(): boolean {
    return this.#endedBy === 'client';
  }

  /** The client asked for a stream, and may have to wait from now on. What is said here about the reply opens it. */
  hold({ id, model, promptTokens, form }: ReplyMeta, timing: ExchangeTiming): void {
    if (this.#endedBy) return;
    const created = Math.floor(Date.now() / 1000);
    const opened: ReplyMeta = { id, model, promptTokens, created, ...(form && { form }) };
    this.#stream = opened;
    const beat = (): void => {
      if (!this.#response.headersSent) this.#open(opened);
      else void this.#write(encodeServerEvent(this.#dialect.keepAlive(opened, this.#beats++)));
      this.#timer = setTimeout(beat, timing.keepAliveMs);
    };
    this.#timer = setTimeout(beat, timing.openAfterMs);
  }

  async reply(reply: Reply, drop: Drop | null = null): Promise<Outcome> {
    clearTimeout(this.#timer);
    if (drop === 'drop-before') this.cut();
    if (this.#endedBy) return this.#undelivered();
    const pieces = this.#stream
      ? this.#events(reply, this.#stream)
      : [{ text: this.#head(200, this.#dialect.render(reply)), events: 0 }];
    const firstByte = Date.now();
    if (drop === 'drop-mid') {
      const half = halfOf(pieces);
      if (await this.#write(half.text)) this.#sent.events += half.events;
      this.cut();
      return { firstByte, delivery: 'partial', cause: 'gateway', status: 200, sent: { ...this.#sent } };
    }
    const whole = await this.#deliver(packed(pieces));
    return {
      firstByte,
      delivery: whole ? 'complete' : 'partial',
      cause: whole ? 'done' : (this.#endedBy ?? 'client'),
      status: 200,
      sent: { ...this.#sent },
    };
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
    let text: string;
    if (this.#stream && this.#response.headersSent) {
      text = encoded(this.#dialect.errorEvents(body, this.#stream, this.#beats));
    } else {
      // Both vendors' clients look at this header before they try again.
      if (options.retry === false) this.#response.setHeader('x-should-retry', 'false');
      // Harnesses that honour it come back; without it some give up at once.
      if (status === 429) this.#response.setHeader('retry-after', '1');
      text = this.#head(status, body);
    }
    await this.#deliver([{ text, events: 0 }]);
    return { firstByte: null, delivery: 'none', cause: options.cause, status, sent: { ...this.#sent } };
  }

  /** Our own end of the connection. */
  cut(): void {
    this.#endedBy ??= 'gateway';
    clearTimeout(this.#timer);
    this.#response.destroy();
  }

  #undelivered(): Outcome {
    const status = this.#response.headersSent ? 200 : CLIENT_LEFT;
    return {
      firstByte: null,
      delivery: 'none',
      cause: this.#endedBy ?? 'client',
      status,
      sent: { ...this.#sent },
    };
  }

  #open(meta: ReplyMeta): void {
    const opening = this.#opening(meta);
    if (opening !== '') void this.#write(opening);
  }

  /** Sets the head of a stream and gives what opens it; nothing where it is open. */
  #opening(meta: ReplyMeta): string {
    if (this.#response.headersSent) return '';
    this.#response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
    });
    return encoded(this.#dialect.opening(meta));
  }

  /** The opening goes out with the first events when the reply came before the client had to be told to wait. */
  #events(reply: Reply, opened: ReplyMeta): Piece[] {
    const { id, model, parts, stop, usage, form } = reply;
    const told = { id, model, parts, stop, usage, created: opened.created!, ...(form && { form }) };
    const events = this.#dialect.events(told, this.#beats);
    const pieces = events.map((event) => ({ text: encodeServerEvent(event), events: 1 }));
    const opening = this.#opening(opened);
    return opening === '' ? pieces : [{ text: opening, events: 0 }, ...pieces];
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

  /**
   * Piece by piece, each after the one before was taken; true when the client's socket has them all. What the last piece's
   * own callback says counts, not `finish`: Node says that also of a response that was destroyed with bytes still waiting.
   */
  async #deliver(pieces: readonly Piece[]): Promise<boolean> {
    for (const [index, { text, events }] of pieces.entries()) {
      const writing = this.#write(text);
      // In one with the last piece, for the connection and for the client.
      const ending = index === pieces.length - 1 ? this.#end() : null;
      if (!(await writing)) return false;
      this.#sent.events += events;
      if (ending === null) continue;
      this.#finished = true;
      await ending;
    }
    return true;
  }

  #end(): Promise<void> {
    return new Promise((resolve) => {
      this.#onClose.push(resolve);
      this.#response.end(resolve);
    });
  }

  /** True once the connection took all of `text`; false when it ended before. */
  #write(text: string): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false);
    const { socket } = this.#response;
    return new Promise<boolean>((resolve) => {
      // One piece waits at a time; what waited before it needs to be told nothing more.
      this.#onClose = [() => resolve(false)];
      this.#response.write(text, (error) => {
        // A write that a destroyed socket cut short is called back without an error.
        const whole = !error && socket?.destroyed === false;
        if (whole) this.#sent.bytes += Buffer.byteLength(text);
        resolve(whole);
      });
    });
  }
}

const encoded = (events: readonly ServerEvent[]): string => events.map(encodeServerEvent).join('');

function packed(parts: readonly Piece[]): Piece[] {
  const pieces: Piece[] = [];
  for (const { text, events } of parts) {
    const last = pieces.at(-1);
    if (last && last.text.length + text.length <= PIECE) {
      last.text += text;
      last.events += events;
    } else {
      pieces.push({ text, events });
    }
  }
  return pieces;
}

/** The first half of the characters, and the events that are whole in it. */
function halfOf(parts: readonly Piece[]): Piece {
  const all = parts.map(({ text }) => text).join('');
  const half = { text: all.slice(0, all.length / 2), events: 0 };
  let end = 0;
  for (const { text, events } of parts) if ((end += text.length) <= half.text.length) half.events += events;
  return half;
}
