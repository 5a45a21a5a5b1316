import { closeSync, fstatSync } from 'node:fs';
import { TreewardError } from '@treeward/base';
import type { RecordIssue } from './parse-events.js';
import { openToRead, readAt } from './scan-lines.js';
import type { RecordEvent, Span } from './types.js';

/** Read around a span at once: calls lie one after the other, so that most spans are found in the last window. */
const WINDOW = 256 << 10;

/**
 * tokens.bin by ranges: one window in memory, whatever the file's size, and no descriptor held between reads. `size` is
 * what it was when the record was read, null when it is missing; the file only grows.
 */
export class TokenFile {
  readonly path: string;
  readonly size: number | null;
  #window = new Uint8Array(0);
  #at = 0;

  /** @throws TreewardError RECORD_E_READ */
  constructor(path: string) {
    this.path = path;
    const fd = openToRead(path);
    this.size = fd === null ? null : fstatSync(fd).size;
    if (fd !== null) closeSync(fd);
  }

  /** A copy of the span's bytes; null when it lies outside. @throws TreewardError RECORD_E_READ */
  read(span: Span): ArrayBuffer | null {
    const size = this.size ?? 0;
    if (!isInside(span, size)) return null;
    const bytes = 4 * span.count;
    if (bytes === 0) return new ArrayBuffer(0);
    if (bytes > WINDOW) return this.#load(span.offset, bytes).buffer;
    if (span.offset < this.#at || span.offset + bytes > this.#at + this.#window.length) {
      this.#window = this.#load(span.offset, Math.min(WINDOW, size - span.offset));
      this.#at = span.offset;
    }
    const start = span.offset - this.#at;
    return this.#window.buffer.slice(start, start + bytes) as ArrayBuffer;
  }

  #load(offset: number, length: number): Uint8Array<ArrayBuffer> {
    const into = new Uint8Array(length);
    const fd = openToRead(this.path);
    try {
      for (let at = 0; at < length;) {
        const read = fd === null ? 0 : readAt(fd, this.path, into, at, length - at, offset + at);
        if (read === 0) throw shorter(this.path, offset + at);
        at += read;
      }
    } finally {
      if (fd !== null) closeSync(fd);
    }
    return into;
  }
}

function shorter(path: string, at: number): TreewardError {
  return new TreewardError(
    'RECORD_E_READ',
    `${path} ends at byte ${at}: it was longer when its record was read`,
    {
      data: { file: path },
      hints: ['keep the folder of a rollout in place while its record is in use'],
    },
  );
}

/** Whole values of 4 bytes inside a file of `size` bytes. */
export function isInside({ offset, count }: Span, size: number): boolean {
  return offset % 4 === 0 && offset + 4 * count <= size;
}

/** Reports a tokens.bin that is missing (`size` null), and spans that lie outside it. */
export function reportTokens(file: string, size: number | null, issues: RecordIssue[]): ReportSpan {
  if (size === null) {
    issues.push({
      severity: 'warn',
      code: 'RECORD_NO_TOKENS',
      message: `${file} is missing: no call of this record has tokens`,
    });
  }
  return (call, what, span) => {
    if (isInside(span, size ?? 0)) return;
    issues.push({
      severity: 'warn',
      code: 'RECORD_SPAN_OUTSIDE',
      call,
      message: `${what} of call ${call} lie outside tokens.bin (offset ${span.offset}, ${span.count} values)`,
    });
  };
}

type ReportSpan = (call: number, what: string, span: Span) => void;

/** Every span that an event names. */
export function visitSpans(event: RecordEvent, visit: ReportSpan): void {
  if (event.type === 'call.prompt') visit(event.call, 'prompt ids', event.prompt.appended);
  if (event.type === 'call.sampled') {
    visit(event.call, 'sampled ids', event.tokens);
    visit(event.call, 'logprobs', event.logprobs);
  }
}
