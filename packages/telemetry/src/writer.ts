import { closeSync, fstatSync, mkdirSync, openSync, readSync, write, writeSync } from 'node:fs';
import { RolloutFolder, TreewardError } from '@treeward/base';
import * as z from 'zod';
import { eventSchemas, isEventType } from './schema.js';
import type { RecordEvent, Span } from './types.js';

export interface RecordWriterOptions {
  /**
   * Check every event against its schema, unknown fields included, before it is buffered.
   * @default true when NODE_ENV is `test`, else false: our own code is typed, and messages can be long
   */
  validate?: boolean;
}

/**
 * Appends to the record of one rollout. Nothing is ever rewritten, so a process killed at any instant leaves at most
 * one torn line at the end, which the reader drops. What `tokens` and `logprobs` were given reaches tokens.bin before
 * the event that names it reaches telemetry.ndjson. One process writes at a time; the next continues with `open`.
 */
export class RecordWriter {
  readonly directory: string;
  readonly #eventsFd: number;
  readonly #tokensFd: number;
  readonly #validate: boolean;
  #tokenBytes: number;
  #lines: string[] = [];
  #chunks: Uint8Array[] = [];
  #running: Promise<void> | null = null;
  #failure: unknown = null;
  #closed = false;

  private constructor(directory: string, events: number, tokens: number, size: number, validate: boolean) {
    this.directory = directory;
    this.#eventsFd = events;
    this.#tokensFd = tokens;
    this.#tokenBytes = size;
    this.#validate = validate;
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
      const validate = options.validate ?? process.env['NODE_ENV'] === 'test';
      return new RecordWriter(directory, events, tokens, tokenBytes, validate);
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

  /**
   * Buffers one event and starts writing; returns at once. Await `flush` to know that it is in the file.
   * @throws TreewardError RECORD_E_EVENT for an event that the schema refuses, RECORD_E_CLOSED, RECORD_E_WRITE when an
   * earlier write failed
   */
  append(event: RecordEvent): void {
    this.#check();
    if (this.#validate) validateEvent(event);
    this.#lines.push(JSON.stringify(event) + '\n');
    this.#start();
  }

  /** @throws TreewardError RECORD_E_WRITE when something could not be written */
  async flush(): Promise<void> {
    while (this.#running) await this.#running;
    this.#check();
  }

  /** Writes what is buffered and closes the files. Calling it again does nothing. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#start();
    while (this.#running) await this.#running;
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#tokensFd);
    closeSync(this.#eventsFd);
    if (this.#failure) this.#check();
  }

  #span(values: Int32Array | Float32Array): Span {
    this.#check();
    const span = { offset: this.#tokenBytes, count: values.length };
    if (values.length > 0) {
      this.#chunks.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength).slice());
      this.#tokenBytes += values.byteLength;
    }
    return span;
  }

  /** In a microtask, so that events appended together are written together. */
  #start(): void {
    this.#running ??= Promise.resolve().then(() => this.#drain());
  }

  #check(): void {
    if (this.#failure) {
      throw new TreewardError('RECORD_E_WRITE', `cannot write to the record in ${this.directory}`, {
        cause: this.#failure,
        data: { directory: this.directory },
      });
    }
    if (this.#closed) {
      throw new TreewardError('RECORD_E_CLOSED', `the record in ${this.directory} is closed`);
    }
  }

  /** Both buffers are taken in the same instant: every span a taken line names is among the taken chunks or older. */
  async #drain(): Promise<void> {
    try {
      while (this.#lines.length > 0 || this.#chunks.length > 0) {
        const chunks = this.#chunks;
        const lines = this.#lines;
        this.#chunks = [];
        this.#lines = [];
        if (chunks.length > 0) await writeAll(this.#tokensFd, Buffer.concat(chunks));
        if (lines.length > 0) await writeAll(this.#eventsFd, Buffer.from(lines.join('')));
      }
    } catch (error) {
      this.#failure = error;
    } finally {
      this.#running = null;
    }
  }
}

async function writeAll(fd: number, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    at += await new Promise<number>((resolve, reject) => {
      write(fd, bytes, at, bytes.length - at, null, (error, written) =>
        error ? reject(error) : resolve(written),
      );
    });
  }
}

/** Strict: a field that the schema does not name is a mistake of ours. */
export function validateEvent(event: RecordEvent): void {
  const type: unknown = event.type;
  if (!isEventType(type)) {
    throw new TreewardError('RECORD_E_EVENT', `unknown event type ${JSON.stringify(type)}`);
  }
  const result = eventSchemas[type].safeParse(event);
  if (!result.success) {
    throw new TreewardError('RECORD_E_EVENT', `${type}: ${z.prettifyError(result.error)}`, {
      data: { type },
    });
  }
}
