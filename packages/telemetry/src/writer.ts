import { closeSync, fstatSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs';
import { RolloutFolder, TreewardError } from '@treeward/base';
import * as z from 'zod';
import { FileAppender } from './file-appender.js';
import { isEvent } from './is-event.js';
import { eventSchemas, isEventType } from './schema.js';
import type { RecordEvent, Span } from './types.js';

export interface RecordWriterOptions {
  /**
   * Bytes in memory above which `drain` waits.
   * @default 8 MiB
   */
  highWater?: number;
}

/** How long what is appended waits for more: a call's events go out in one write, and a kill costs the last of them. */
const LINGER_MS = 5;

/** Written at once: what is queued is joined up to this size, so that a full queue is never in memory twice. */
const BATCH = 1 << 20;

/**
 * Appends to the record of one rollout. Nothing is ever rewritten, so a process killed at any instant leaves at most
 * one torn line at the end, which the reader drops. What `tokens` and `logprobs` were given reaches tokens.bin before
 * the event that names it reaches telemetry.ndjson. One process writes at a time; the next continues with `open`.
 *
 * Writing returns at once and queues. Who writes much awaits `drain` in between: then a disk slower than the rollout
 * slows the rollout instead of filling the memory.
 */
export class RecordWriter {
  readonly directory: string;
  readonly #events: FileAppender;
  readonly #tokens: FileAppender;
  readonly #highWater: number;
  #tokenBytes: number;
  #lines: string[] = [];
  #chunks: Uint8Array[] = [];
  #buffered = 0;
  /** Called as soon as the queue is below the mark, or will never be. */
  #waiting: (() => void)[] = [];
  #running: Promise<void> | null = null;
  /** Ends the wait of a write that has not begun. */
  #begin: () => void = nothing;
  #failure: unknown = null;
  #closed = false;

  private constructor(directory: string, events: number, tokens: number, size: number, highWater: number) {
    this.directory = directory;
    this.#events = new FileAppender(events);
    this.#tokens = new FileAppender(tokens);
    this.#tokenBytes = size;
    this.#highWater = highWater;
  }

  /**
   * Creates the record, or continues the one that is there: a torn last line is closed with a newline (it stays visible
   * as a bad line), half a token is filled up with zeros.
   * @throws TreewardError RECORD_E_OPEN naming the directory
   */
  static open(directory: string, options: RecordWriterOptions = {}): RecordWriter {
    const folder = new RolloutFolder(directory);
    const opened: number[] = [];
    try {
      mkdirSync(directory, { recursive: true });
      // 'a+' is O_APPEND with reading, which the look at the last byte needs.
      const tokens = openSync(folder.tokens, 'a+');
      opened.push(tokens);
      const events = openSync(folder.telemetry, 'a+');
      opened.push(events);
      let tokenBytes = fstatSync(tokens).size;
      const torn = tokenBytes % 4;
      if (torn > 0) tokenBytes += writeSync(tokens, new Uint8Array(4 - torn));
      const eventBytes = fstatSync(events).size;
      const last = new Uint8Array(1);
      if (eventBytes > 0) {
        readSync(events, last, 0, 1, eventBytes - 1);
        if (last[0] !== 0x0a) writeSync(events, '\n');
      }
      return new RecordWriter(directory, events, tokens, tokenBytes, options.highWater ?? 8 << 20);
    } catch (cause) {
      for (const fd of opened) closeSync(fd);
      throw new TreewardError('RECORD_E_OPEN', `cannot open the record in ${directory}`, {
        cause,
        data: { directory },
        hints: ['the folder must be writable by this user'],
      });
    }
  }

  /** Where these sampled or prompt ids will lie. The array is copied. */
  tokens(ids: Int32Array): Span {
    return this.#span(ids);
  }

  /** Natural logarithms, one per sampled id, in the order of the ids. The array is copied. */
  logprobs(values: Float32Array): Span {
    return this.#span(values);
  }

  /** Bytes that are queued and not yet in the files. */
  get buffered(): number {
    return this.#buffered;
  }

  /** Whether `drain` would wait. */
  get behind(): boolean {
    return this.#buffered >= this.#highWater;
  }

  /**
   * Queues one event and starts writing; returns at once. Await `flush` to know that it is in the file.
   * @throws TreewardError RECORD_E_EVENT for an event that the schema refuses (an unknown field included),
   * RECORD_E_CLOSED, RECORD_E_WRITE when an earlier write failed
   */
  append(event: RecordEvent): void {
    this.#check();
    if (!isEvent(event)) throw explain(event);
    const line = JSON.stringify(event) + '\n';
    this.#lines.push(line);
    this.#buffered += Buffer.byteLength(line);
    this.#start();
  }

  /**
   * Resolves at once while little is queued; otherwise as soon as the queue is below `highWater`.
   * @throws TreewardError RECORD_E_WRITE when something could not be written, RECORD_E_CLOSED
   */
  async drain(): Promise<void> {
    while (this.#buffered >= this.#highWater && !this.#failure && !this.#closed) {
      this.#hurry();
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#check();
  }

  /** @throws TreewardError RECORD_E_WRITE when something could not be written */
  async flush(): Promise<void> {
    await this.#empty();
    this.#check();
  }

  /** Writes what is buffered and closes the files. Calling it again does nothing. */
  async close(): Promise<void> {
    if (this.#closed) return;
    await this.#empty();
    if (this.#closed) return;
    this.#closed = true;
    this.#tokens.close();
    this.#events.close();
    if (this.#failure) this.#check();
  }

  #span(values: Int32Array | Float32Array): Span {
    this.#check();
    const span = { offset: this.#tokenBytes, count: values.length };
    if (values.length > 0) {
      this.#chunks.push(Buffer.from(new Uint8Array(values.buffer, values.byteOffset, values.byteLength)));
      this.#tokenBytes += values.byteLength;
      this.#buffered += values.byteLength;
    }
    return span;
  }

  #start(): void {
    this.#running ??= new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LINGER_MS);
      this.#begin = () => {
        clearTimeout(timer);
        resolve();
      };
    }).then(() => this.#write());
  }

  /** As `#start`, without waiting for more. */
  #hurry(): void {
    this.#start();
    this.#begin();
  }

  async #empty(): Promise<void> {
    while (this.#running || this.#lines.length > 0 || this.#chunks.length > 0) {
      this.#hurry();
      await this.#running;
    }
  }

  #check(): void {
    if (this.#failure) {
      const why = (this.#failure as Error).message;
      throw new TreewardError('RECORD_E_WRITE', `cannot write to the record in ${this.directory}: ${why}`, {
        cause: this.#failure,
        data: { directory: this.directory },
        hints: ['what was written before stays readable', 'look for free space with df'],
      });
    }
    if (this.#closed) {
      throw new TreewardError('RECORD_E_CLOSED', `the record in ${this.directory} is closed`);
    }
  }

  /** Both queues are taken in the same instant: every span a taken line names is among the taken chunks or older. */
  async #write(): Promise<void> {
    this.#begin = nothing;
    const chunks = this.#chunks;
    const lines = this.#lines;
    this.#chunks = [];
    this.#lines = [];
    try {
      await this.#writeQueue(this.#tokens, chunks, (chunk) => chunk.length, joinBytes);
      await this.#writeQueue(this.#events, lines, Buffer.byteLength, joinText);
    } catch (error) {
      this.#failure = error;
      this.#lines = [];
      this.#chunks = [];
      this.#buffered = 0;
    } finally {
      this.#running = null;
      this.#release();
      if (this.#lines.length > 0) this.#start();
      if (this.#waiting.length > 0) this.#hurry();
    }
  }

  async #writeQueue<T>(
    file: FileAppender,
    queue: T[],
    sizeOf: (item: T) => number,
    join: (items: T[]) => Uint8Array,
  ): Promise<void> {
    for (let first = 0; first < queue.length;) {
      let last = first;
      let size = 0;
      do size += sizeOf(queue[last++]!);
      while (last < queue.length && size + sizeOf(queue[last]!) <= BATCH);
      const bytes = join(first === 0 && last === queue.length ? queue : queue.slice(first, last));
      const writing = file.append(bytes);
      if (writing) await writing;
      this.#buffered -= bytes.length;
      this.#release();
      first = last;
    }
  }

  #release(): void {
    if (this.#buffered >= this.#highWater && !this.#failure) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}

const nothing = (): void => undefined;
const joinBytes = (chunks: Uint8Array[]): Uint8Array =>
  chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
const joinText = (lines: string[]): Uint8Array =>
  Buffer.from(lines.length === 1 ? lines[0]! : lines.join(''));

/** What the schema has against an event that `isEvent` refused. Strict: a field it does not name is a mistake of ours. */
function explain(event: RecordEvent): TreewardError {
  const type: unknown = event.type;
  if (!isEventType(type)) {
    return new TreewardError('RECORD_E_EVENT', `unknown event type ${JSON.stringify(type)}`);
  }
  const { error } = eventSchemas[type].safeParse(event);
  const why = error ? z.prettifyError(error) : 'refused';
  return new TreewardError('RECORD_E_EVENT', `${type}: ${why}`, { data: { type } });
}
