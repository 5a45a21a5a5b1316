import { readFileSync } from 'node:fs';
import { RolloutFolder, TreewardError } from '@treeward/base';
import * as z from 'zod';
import { eventSchemas, isEventType } from './schema.js';
import { RECORD_VERSION, type Json, type RecordEvent, type Span } from './types.js';

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

export interface RolloutRecord {
  /** In file order; a line written twice is here twice. */
  events: RecordEvent[];
  /** Null when the span lies outside tokens.bin. */
  tokens(span: Span): Int32Array | null;
  logprobs(span: Span): Float32Array | null;
  issues: RecordIssue[];
  aside: LaidAside[];
}

/**
 * Reads what is there, whatever happened to its writer: a torn last line is dropped, a bad line is skipped, what is
 * unknown is laid aside, each with an issue. Only a record that cannot mean anything is refused.
 * @throws TreewardError RECORD_E_MISSING without telemetry.ndjson, RECORD_E_VERSION for another major version
 */
export function readRecord(directory: string): RolloutRecord {
  const folder = new RolloutFolder(directory);
  const bytes = readBytes(folder.telemetry);
  if (!bytes) {
    throw new TreewardError('RECORD_E_MISSING', `no record in ${directory}: ${folder.telemetry} is missing`, {
      data: { directory },
      hints: ['give the folder of one rollout, such as runs/<name>/rollouts/<id>'],
    });
  }
  const record = parseEvents(bytes, folder.telemetry);
  const sidecar = readBytes(folder.tokens);
  if (!sidecar) {
    record.issues.push({
      severity: 'warn',
      code: 'RECORD_NO_TOKENS',
      message: `${folder.tokens} is missing: no call of this record has tokens`,
    });
  }
  const access = sidecarAccess(sidecar ?? new Uint8Array(0));
  reportSpans(record.events, access.inside, record.issues);
  return { ...record, tokens: access.tokens, logprobs: access.logprobs };
}

function readBytes(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new TreewardError('RECORD_E_READ', `cannot read ${path}: ${(cause as Error).message}`, { cause });
  }
}

type Parsed = Pick<RolloutRecord, 'events' | 'issues' | 'aside'>;

function parseEvents(bytes: Buffer, file: string): Parsed {
  const parsed: Parsed = { events: [], issues: [], aside: [] };
  const told = new Set<string>();
  let line = 0;
  for (let start = 0; start < bytes.length;) {
    line++;
    const newline = bytes.indexOf(0x0a, start);
    const end = newline < 0 ? bytes.length : newline;
    const text = bytes.toString('utf8', start, end);
    start = end + 1;
    if (text === '') continue;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      parsed.issues.push(
        newline < 0
          ? {
              severity: 'warn',
              code: 'RECORD_TORN_TAIL',
              line,
              message: `the last line was cut off after ${text.length} characters and is dropped: its writer was killed`,
            }
          : { severity: 'warn', code: 'RECORD_BAD_LINE', line, message: `line ${line} is not JSON; skipped` },
      );
      continue;
    }
    addEvent(parsed, value, line, file, told);
  }
  return parsed;
}

function addEvent(parsed: Parsed, value: unknown, line: number, file: string, told: Set<string>): void {
  const bad = (why: string): void => {
    parsed.issues.push({
      severity: 'warn',
      code: 'RECORD_BAD_LINE',
      line,
      message: `line ${line} is not an event and is skipped: ${why}`,
    });
  };
  const tellOnce = (code: 'RECORD_UNKNOWN_EVENT' | 'RECORD_UNKNOWN_FIELD', what: string): void => {
    if (told.has(what)) return;
    told.add(what);
    parsed.issues.push({ severity: 'info', code, line, message: `${what} is unknown here and laid aside` });
  };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return bad('not an object');
  const event = value as { [key: string]: Json };
  const type = event['type'];
  if (typeof type !== 'string') return bad('no type');
  if (!isEventType(type)) {
    parsed.aside.push({ line, value: event });
    return tellOnce('RECORD_UNKNOWN_EVENT', `event ${JSON.stringify(type)}`);
  }
  if (type === 'rollout.start' && event['version'] !== RECORD_VERSION) {
    throw new TreewardError(
      'RECORD_E_VERSION',
      `${file} has record version ${JSON.stringify(event['version'])}; this reader knows ${RECORD_VERSION}`,
      { data: { file }, hints: ['read it with the Treeward that wrote it'] },
    );
  }
  const schema = eventSchemas[type];
  let result: z.ZodSafeParseResult<RecordEvent> = schema.safeParse(event);
  if (!result.success && result.error.issues.every((issue) => issue.code === 'unrecognized_keys')) {
    for (const issue of result.error.issues) {
      if (issue.code !== 'unrecognized_keys') continue;
      const owner = issue.path.reduce<Json>((at, key) => (at as { [k: string]: Json })[String(key)]!, event);
      for (const key of issue.keys) {
        const path = [type, ...issue.path, key].join('.');
        const fields = owner as { [key: string]: Json };
        parsed.aside.push({ line, value: { path, value: fields[key]! } });
        delete fields[key];
        tellOnce('RECORD_UNKNOWN_FIELD', `field ${path}`);
      }
    }
    result = schema.safeParse(event);
  }
  if (!result.success) return bad(`${type}: ${z.prettifyError(result.error).replaceAll('\n', ' ')}`);
  parsed.events.push(result.data);
}

function sidecarAccess(bytes: Uint8Array) {
  const inside = ({ offset, count }: Span): boolean => offset % 4 === 0 && offset + 4 * count <= bytes.length;
  const slice = ({ offset, count }: Span): ArrayBuffer =>
    bytes.buffer.slice(bytes.byteOffset + offset, bytes.byteOffset + offset + 4 * count) as ArrayBuffer;
  return {
    inside,
    tokens: (span: Span): Int32Array | null => (inside(span) ? new Int32Array(slice(span)) : null),
    logprobs: (span: Span): Float32Array | null => (inside(span) ? new Float32Array(slice(span)) : null),
  };
}

function reportSpans(
  events: readonly RecordEvent[],
  inside: (span: Span) => boolean,
  issues: RecordIssue[],
): void {
  const check = (call: number, what: string, span: Span): void => {
    if (inside(span)) return;
    issues.push({
      severity: 'warn',
      code: 'RECORD_SPAN_OUTSIDE',
      call,
      message: `${what} of call ${call} lie outside tokens.bin (offset ${span.offset}, ${span.count} values)`,
    });
  };
  for (const event of events) {
    if (event.type === 'call.prompt') check(event.call, 'prompt ids', event.prompt.appended);
    if (event.type === 'call.sampled') {
      check(event.call, 'sampled ids', event.tokens);
      check(event.call, 'logprobs', event.logprobs);
    }
  }
}
