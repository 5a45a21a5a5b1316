import type { FlatRecord } from './flat-record.js';
import type { RolloutRecord } from './read-record.js';
import { isInside } from './token-file.js';
import type { RecordEvent, Span } from './types.js';

/** Event `index` of the record: its line, parsed. It was validated when the record was. */
export function eventOf(flat: FlatRecord, index: number): RecordEvent {
  const { buffer, byteOffset, byteLength } = flat.text;
  const line = Buffer.from(buffer, byteOffset, byteLength).toString(
    'utf8',
    flat.begin_E[index]!,
    flat.end_E[index]!,
  );
  return JSON.parse(line) as RecordEvent;
}

/**
 * A flat record as what recovery reads. Tokens and logprobs are windows into it and not copies: writing to one writes to
 * the record. Events are parsed at the first use of `events`.
 */
export function viewRecord(flat: FlatRecord): RolloutRecord {
  const { sidecar, issues, aside } = flat;
  const place = (span: Span): number | null =>
    isInside(span, sidecar.length) ? sidecar.byteOffset + span.offset : null;
  let events: RecordEvent[] | null = null;
  return {
    get events() {
      return (events ??= Array.from(flat.type_E, (_, index) => eventOf(flat, index)));
    },
    tokens: (span) => {
      const at = place(span);
      return at === null ? null : new Int32Array(sidecar.buffer, at, span.count);
    },
    logprobs: (span) => {
      const at = place(span);
      return at === null ? null : new Float32Array(sidecar.buffer, at, span.count);
    },
    issues,
    aside,
  };
}
