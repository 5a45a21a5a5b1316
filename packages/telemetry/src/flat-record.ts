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

type Columns = {
  [K in keyof FlatRecord as FlatRecord[K] extends Float64Array | Uint32Array ? K : never]: FlatRecord[K];
};
type ColumnName = keyof Columns;

/** The name says which array a column becomes: see the legend. */
const isIndex = (name: ColumnName): boolean => name.startsWith('event_') || name.includes('Name_');

const COLUMNS: readonly ColumnName[] = [
  ...(['begin_E', 'end_E', 'line_E'] as const),
  ...(['event_A', 'call_A', 'time_A', 'messagesParent_A', 'messagesKept_A', 'messagesAppended_A'] as const),
  ...(['dialectName_A', 'toolsName_A'] as const),
  ...([
    'event_P',
    'call_P',
    'parent_P',
    'kept_P',
    'appendedOffset_P',
    'appendedCount_P',
    'length_P',
  ] as const),
  ...(['reasonName_P'] as const),
  ...(['event_S', 'call_S', 'time_S', 'tokensOffset_S', 'tokensCount_S', 'logprobsOffset_S'] as const),
  ...(['logprobsCount_S', 'finishName_S', 'policyName_S', 'policyVersion_S'] as const),
  ...(['event_D', 'call_D', 'time_D', 'firstByte_D', 'deliveryName_D', 'causeName_D', 'status_D'] as const),
];

/** Grows the columns event by event. */
export class FlatColumns {
  readonly names: string[] = [];
  readonly #types: number[] = [];
  readonly #columns = Object.fromEntries(COLUMNS.map((name) => [name, []])) as unknown as Record<
    ColumnName,
    number[]
  >;
  readonly #indices = new Map<string, number>();

  add(event: RecordEvent, line: number, begin: number, end: number): void {
    const index = this.#types.length;
    this.#types.push(TYPE_INDEX.get(event.type)!);
    this.#columns.begin_E.push(begin);
    this.#columns.end_E.push(end);
    this.#columns.line_E.push(line);
    if (event.type === 'call.start') this.#start(event, index);
    else if (event.type === 'call.prompt') this.#prompt(event, index);
    else if (event.type === 'call.sampled') this.#sampled(event, index);
    else if (event.type === 'call.end') this.#end(event, index);
  }

  finish(): Columns & Pick<FlatRecord, 'type_E' | 'names'> {
    const arrays = COLUMNS.map((name) => {
      const values = this.#columns[name];
      return [name, isIndex(name) ? Uint32Array.from(values) : Float64Array.from(values)] as const;
    });
    const columns = Object.fromEntries(arrays) as unknown as Columns;
    return { ...columns, type_E: Uint8Array.from(this.#types), names: this.names };
  }

  #name(text: string): number {
    let index = this.#indices.get(text);
    if (index === undefined) {
      index = this.names.push(text) - 1;
      this.#indices.set(text, index);
    }
    return index;
  }

  #start({ call, time, dialect, messages, tools }: CallStart, index: number): void {
    const columns = this.#columns;
    columns.event_A.push(index);
    columns.call_A.push(call);
    columns.time_A.push(time);
    columns.messagesParent_A.push(messages.parent ?? -1);
    columns.messagesKept_A.push(messages.kept);
    columns.messagesAppended_A.push(messages.appended.length);
    columns.dialectName_A.push(this.#name(dialect));
    columns.toolsName_A.push(this.#name(tools.hash));
  }

  #prompt({ call, prompt, graft }: CallPrompt, index: number): void {
    const columns = this.#columns;
    columns.event_P.push(index);
    columns.call_P.push(call);
    columns.parent_P.push(prompt.parent ?? -1);
    columns.kept_P.push(prompt.kept);
    columns.appendedOffset_P.push(prompt.appended.offset);
    columns.appendedCount_P.push(prompt.appended.count);
    columns.length_P.push(prompt.length);
    columns.reasonName_P.push(this.#name(graft.reason));
  }

  #sampled({ call, time, tokens, logprobs, finish, policy }: CallSampled, index: number): void {
    const columns = this.#columns;
    columns.event_S.push(index);
    columns.call_S.push(call);
    columns.time_S.push(time);
    columns.tokensOffset_S.push(tokens.offset);
    columns.tokensCount_S.push(tokens.count);
    columns.logprobsOffset_S.push(logprobs.offset);
    columns.logprobsCount_S.push(logprobs.count);
    columns.finishName_S.push(this.#name(finish));
    columns.policyName_S.push(this.#name(policy.id));
    columns.policyVersion_S.push(policy.version);
  }

  #end({ call, time, firstByte, delivery, cause, status }: CallEnd, index: number): void {
    const columns = this.#columns;
    columns.event_D.push(index);
    columns.call_D.push(call);
    columns.time_D.push(time);
    columns.firstByte_D.push(firstByte ?? Number.NaN);
    columns.deliveryName_D.push(this.#name(delivery));
    columns.causeName_D.push(this.#name(cause));
    columns.status_D.push(status);
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
