import type { LaidAside, RecordIssue } from './parse-events.js';
import type { CallEnd, CallPrompt, CallSampled, CallStart, RecordEvent } from './types.js';

/**
 * A record as flat arrays, which cross between threads by changing owner. Row by row the columns say what the events
 * say; what is text (messages, headers, hashes, facts) stays in `text`, byte for byte, and is parsed when asked for.
 *
 * Legend: E events, in file order; A call.start; P call.prompt; S call.sampled; D call.end. `event_X` is the row's event
 * in E. Numbers are as in types.ts (milliseconds, byte offsets, counts); null is -1 among naturals and NaN among times.
 * `…Name_X` are indices into `names`. Columns that may hold any number of the record are float64: exact to 2^53.
 */
export interface FlatRecord {
  directory: string;
  /** telemetry.ndjson as it was, then the events that lost a field to `aside`. Event e is `text[begin_E[e], end_E[e])`. */
  text: Uint8Array<ArrayBuffer>;
  begin_E: Float64Array<ArrayBuffer>;
  end_E: Float64Array<ArrayBuffer>;
  /** Line of telemetry.ndjson, from 1. */
  line_E: Float64Array<ArrayBuffer>;
  /** Index into EVENT_TYPES. */
  type_E: Uint8Array<ArrayBuffer>;

  event_A: Uint32Array<ArrayBuffer>;
  call_A: Float64Array<ArrayBuffer>;
  time_A: Float64Array<ArrayBuffer>;
  messagesParent_A: Float64Array<ArrayBuffer>;
  messagesKept_A: Float64Array<ArrayBuffer>;
  messagesAppended_A: Float64Array<ArrayBuffer>;
  dialectName_A: Uint32Array<ArrayBuffer>;
  toolsName_A: Uint32Array<ArrayBuffer>;

  event_P: Uint32Array<ArrayBuffer>;
  call_P: Float64Array<ArrayBuffer>;
  parent_P: Float64Array<ArrayBuffer>;
  kept_P: Float64Array<ArrayBuffer>;
  appendedOffset_P: Float64Array<ArrayBuffer>;
  appendedCount_P: Float64Array<ArrayBuffer>;
  length_P: Float64Array<ArrayBuffer>;
  reasonName_P: Uint32Array<ArrayBuffer>;

  event_S: Uint32Array<ArrayBuffer>;
  call_S: Float64Array<ArrayBuffer>;
  time_S: Float64Array<ArrayBuffer>;
  tokensOffset_S: Float64Array<ArrayBuffer>;
  tokensCount_S: Float64Array<ArrayBuffer>;
  logprobsOffset_S: Float64Array<ArrayBuffer>;
  logprobsCount_S: Float64Array<ArrayBuffer>;
  finishName_S: Uint32Array<ArrayBuffer>;
  policyName_S: Uint32Array<ArrayBuffer>;
  policyVersion_S: Float64Array<ArrayBuffer>;

  event_D: Uint32Array<ArrayBuffer>;
  call_D: Float64Array<ArrayBuffer>;
  time_D: Float64Array<ArrayBuffer>;
  firstByte_D: Float64Array<ArrayBuffer>;
  deliveryName_D: Uint32Array<ArrayBuffer>;
  causeName_D: Uint32Array<ArrayBuffer>;
  status_D: Float64Array<ArrayBuffer>;

  /** Each distinct dialect, tool manifest hash, reason, finish, policy id, delivery and cause once. */
  names: string[];
  /** tokens.bin as it was; empty when it is missing. */
  sidecar: Uint8Array<ArrayBuffer>;
  issues: RecordIssue[];
  aside: LaidAside[];
}

/** What `type_E` counts in. */
export const EVENT_TYPES: readonly RecordEvent['type'][] = [
  'rollout.start',
  'engine',
  'call.start',
  'call.prompt',
  'call.sampled',
  'call.end',
  'workspace',
  'tool.exec',
  'transcript',
  'process.exit',
  'verifier',
  'rollout.end',
];
const TYPE_INDEX = new Map(EVENT_TYPES.map((type, index) => [type, index]));

/** Columns of each table, in the order in which FlatColumns puts a row. */
const TABLES = {
  E: ['begin_E', 'end_E', 'line_E', 'type_E'],
  A: [
    ...(['event_A', 'call_A', 'time_A', 'messagesParent_A', 'messagesKept_A', 'messagesAppended_A'] as const),
    ...(['dialectName_A', 'toolsName_A'] as const),
  ],
  P: [
    ...(['event_P', 'call_P', 'parent_P', 'kept_P', 'appendedOffset_P', 'appendedCount_P'] as const),
    ...(['length_P', 'reasonName_P'] as const),
  ],
  S: [
    ...(['event_S', 'call_S', 'time_S', 'tokensOffset_S', 'tokensCount_S', 'logprobsOffset_S'] as const),
    ...(['logprobsCount_S', 'finishName_S', 'policyName_S', 'policyVersion_S'] as const),
  ],
  D: [
    ...(['event_D', 'call_D', 'time_D', 'firstByte_D', 'deliveryName_D', 'causeName_D'] as const),
    'status_D',
  ],
} as const;

type ColumnName = (typeof TABLES)[keyof typeof TABLES][number];
type Columns = Pick<FlatRecord, ColumnName | 'names'>;

/** The name says which array a column becomes: see the legend. */
function arrayOf(name: ColumnName, rows: number): Columns[ColumnName] {
  if (name === 'type_E') return new Uint8Array(rows);
  return name.startsWith('event_') || name.includes('Name_') ? new Uint32Array(rows) : new Float64Array(rows);
}

/** Rows of numbers, one after the other in one array that grows by doubling: a push per column costs several times that. */
class Rows {
  readonly #width: number;
  #values = new Float64Array(256);
  #filled = 0;

  constructor(width: number) {
    this.#width = width;
  }

  get length(): number {
    return this.#filled / this.#width;
  }

  put(value: number): void {
    if (this.#filled === this.#values.length) {
      const larger = new Float64Array(2 * this.#filled);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#filled++] = value;
  }

  copyColumn(column: number, into: Columns[ColumnName]): void {
    for (let row = 0, at = column; row < into.length; row++, at += this.#width) into[row] = this.#values[at]!;
  }
}

/** Grows the columns event by event. */
export class FlatColumns {
  readonly #names: string[] = [];
  readonly #indices = new Map<string, number>();
  readonly #events = new Rows(TABLES.E.length);
  readonly #starts = new Rows(TABLES.A.length);
  readonly #prompts = new Rows(TABLES.P.length);
  readonly #samples = new Rows(TABLES.S.length);
  readonly #ends = new Rows(TABLES.D.length);
  #count = 0;

  /** `text[begin, end)` is the event's line, number `line` of the file. */
  add(event: RecordEvent, line: number, begin: number, end: number): void {
    const index = this.#count++;
    const events = this.#events;
    events.put(begin);
    events.put(end);
    events.put(line);
    events.put(TYPE_INDEX.get(event.type)!);
    if (event.type === 'call.start') this.#start(event, index);
    else if (event.type === 'call.prompt') this.#prompt(event, index);
    else if (event.type === 'call.sampled') this.#sampled(event, index);
    else if (event.type === 'call.end') this.#end(event, index);
  }

  finish(): Columns {
    const rows = { E: this.#events, A: this.#starts, P: this.#prompts, S: this.#samples, D: this.#ends };
    const columns: [string, unknown][] = [['names', this.#names]];
    for (const table of Object.keys(rows) as (keyof typeof rows)[]) {
      TABLES[table].forEach((name, column) => {
        const values = arrayOf(name, rows[table].length);
        rows[table].copyColumn(column, values);
        columns.push([name, values]);
      });
    }
    return Object.fromEntries(columns) as unknown as Columns;
  }

  #name(text: string): number {
    let index = this.#indices.get(text);
    if (index === undefined) {
      index = this.#names.push(text) - 1;
      this.#indices.set(text, index);
    }
    return index;
  }

  #start({ call, time, dialect, messages, tools }: CallStart, index: number): void {
    const rows = this.#starts;
    rows.put(index);
    rows.put(call);
    rows.put(time);
    rows.put(messages.parent ?? -1);
    rows.put(messages.kept);
    rows.put(messages.appended.length);
    rows.put(this.#name(dialect));
    rows.put(this.#name(tools.hash));
  }

  #prompt({ call, prompt, graft }: CallPrompt, index: number): void {
    const rows = this.#prompts;
    rows.put(index);
    rows.put(call);
    rows.put(prompt.parent ?? -1);
    rows.put(prompt.kept);
    rows.put(prompt.appended.offset);
    rows.put(prompt.appended.count);
    rows.put(prompt.length);
    rows.put(this.#name(graft.reason));
  }

  #sampled({ call, time, tokens, logprobs, finish, policy }: CallSampled, index: number): void {
    const rows = this.#samples;
    rows.put(index);
    rows.put(call);
    rows.put(time);
    rows.put(tokens.offset);
    rows.put(tokens.count);
    rows.put(logprobs.offset);
    rows.put(logprobs.count);
    rows.put(this.#name(finish));
    rows.put(this.#name(policy.id));
    rows.put(policy.version);
  }

  #end({ call, time, firstByte, delivery, cause, status }: CallEnd, index: number): void {
    const rows = this.#ends;
    rows.put(index);
    rows.put(call);
    rows.put(time);
    rows.put(firstByte ?? Number.NaN);
    rows.put(this.#name(delivery));
    rows.put(this.#name(cause));
    rows.put(status);
  }
}

/** Every buffer of the record, for a transfer list. */
export function buffersOf(flat: FlatRecord): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const value of Object.values(flat)) {
    if (ArrayBuffer.isView(value)) buffers.add(value.buffer as ArrayBuffer);
  }
  return [...buffers];
}
