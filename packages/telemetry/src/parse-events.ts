import { isUtf8 } from 'node:buffer';
import { TreewardError } from '@treeward/base';
import * as z from 'zod';
import { isEvent, isNatural } from './is-event.js';
import type { VisitLine } from './scan-lines.js';
import { eventSchemas, isEventType } from './schema.js';
import { RECORD_VERSION, type Json, type RecordEvent } from './types.js';

/** Something about the record itself that its user should know. `line` counts from 1. */
export interface RecordIssue {
  severity: 'fatal' | 'warn' | 'info';
  code:
    | 'RECORD_TORN_TAIL'
    | 'RECORD_BAD_LINE'
    | 'RECORD_UNKNOWN_EVENT'
    | 'RECORD_UNKNOWN_FIELD'
    | 'RECORD_SPAN_OUTSIDE'
    | 'RECORD_NO_TOKENS';
  line?: number;
  call?: number;
  message: string;
}

/** What a later minor wrote and this reader does not know: kept, never interpreted. */
export interface LaidAside {
  line: number;
  /** The whole event, or `{path, value}` of one field. */
  value: Json;
}

/** Takes an accepted event. `bytes[start, end)` is its line, or `bytes` is null where fields were laid aside from it. */
export type TakeEvent = (
  event: RecordEvent,
  line: number,
  bytes: Buffer | null,
  start: number,
  end: number,
) => void;

/** Turns the lines of one record, in order, into events and issues. */
export class EventParser {
  readonly issues: RecordIssue[] = [];
  readonly aside: LaidAside[] = [];
  readonly #file: string;
  readonly #take: TakeEvent;
  readonly #told = new Set<string>();
  #line = 0;

  constructor(file: string, take: TakeEvent) {
    this.#file = file;
    this.#take = take;
  }

  /** @throws TreewardError RECORD_E_VERSION for another major version */
  readonly visit: VisitLine = (bytes, start, end, ended) => {
    const line = ++this.#line;
    if (start === end) return;
    let value: unknown;
    try {
      value = JSON.parse(decode(bytes, start, end));
    } catch (error) {
      // A line longer than the longest string is as lost as one that is not JSON.
      const why = error instanceof SyntaxError ? 'is not JSON' : (error as Error).message;
      this.issues.push(ended ? badLine(line, `${why}; skipped`) : tornTail(line, end - start));
      return;
    }
    if (isEvent(value)) {
      this.#take(value, line, bytes, start, end);
    } else {
      const event = this.#salvage(value, line);
      if (event) this.#take(event, line, null, 0, 0);
    }
  };

  /** A line that is no event as it stands: without the fields a later minor added it may be one. */
  #salvage(value: unknown, line: number): RecordEvent | null {
    const bad = (why: string): null => {
      this.issues.push(badLine(line, `is not an event and is skipped: ${why}`));
      return null;
    };
    const tellOnce = (code: 'RECORD_UNKNOWN_EVENT' | 'RECORD_UNKNOWN_FIELD', what: string): void => {
      if (this.#told.has(what)) return;
      this.#told.add(what);
      this.issues.push({ severity: 'info', code, line, message: `${what} is unknown here and laid aside` });
    };
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return bad('not an object');
    const event = value as { [key: string]: Json };
    const type = event['type'];
    if (typeof type !== 'string') return bad('no type');
    if (!isEventType(type)) {
      this.aside.push({ line, value: event });
      tellOnce('RECORD_UNKNOWN_EVENT', `event ${JSON.stringify(type)}`);
      return null;
    }
    if (type === 'rollout.start' && isNatural(event['version']) && event['version'] !== RECORD_VERSION) {
      throw new TreewardError(
        'RECORD_E_VERSION',
        `${this.#file} has record version ${JSON.stringify(event['version'])}; this reader knows ${RECORD_VERSION}`,
        { data: { file: this.#file }, hints: ['read it with the Treeward that wrote it'] },
      );
    }
    const schema = eventSchemas[type];
    let result: z.ZodSafeParseResult<RecordEvent> = schema.safeParse(event);
    if (!result.success && result.error.issues.every((issue) => issue.code === 'unrecognized_keys')) {
      for (const issue of result.error.issues) {
        if (issue.code !== 'unrecognized_keys') continue;
        const owner = issue.path.reduce<Json>(
          (at, key) => (at as { [k: string]: Json })[String(key)]!,
          event,
        );
        for (const key of issue.keys) {
          const path = [type, ...issue.path, key].join('.');
          const fields = owner as { [key: string]: Json };
          this.aside.push({ line, value: { path, value: fields[key]! } });
          delete fields[key];
          tellOnce('RECORD_UNKNOWN_FIELD', `field ${path}`);
        }
      }
      result = schema.safeParse(event);
    }
    if (!result.success) return bad(`${type}: ${z.prettifyError(result.error).replaceAll('\n', ' ')}`);
    return result.data;
  }
}

/** @throws TypeError for bytes that are not UTF-8: they would decode to U+FFFD and pass for text */
function decode(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString('utf8', start, end);
  // Only damage and a genuine U+FFFD leave one in the text; looking for it costs nothing where all is ASCII.
  if (text.includes('\uFFFD') && !isUtf8(bytes.subarray(start, end))) throw new TypeError('is not UTF-8');
  return text;
}

function badLine(line: number, what: string): RecordIssue {
  return { severity: 'warn', code: 'RECORD_BAD_LINE', line, message: `line ${line} ${what}` };
}

function tornTail(line: number, bytes: number): RecordIssue {
  return {
    severity: 'warn',
    code: 'RECORD_TORN_TAIL',
    line,
    message: `the last line was cut off after ${bytes} bytes and is dropped: its writer was killed`,
  };
}

export function missingRecord(directory: string, file: string): TreewardError {
  return new TreewardError('RECORD_E_MISSING', `no record in ${directory}: ${file} is missing`, {
    data: { directory },
    hints: ['give the folder of one rollout, such as runs/<name>/rollouts/<id>'],
  });
}
