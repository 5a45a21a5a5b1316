import { RolloutFolder } from '@treeward/base';
import { EventParser, missingRecord, type LaidAside, type RecordIssue } from './parse-events.js';
import { scanLines } from './scan-lines.js';
import { reportTokens, TokenFile, visitSpans } from './token-file.js';
import type { RecordEvent, Span } from './types.js';

export interface RolloutRecord {
  /** In file order; a line written twice is here twice. */
  readonly events: RecordEvent[];
  /**
   * Null when the span lies outside tokens.bin.
   * @throws TreewardError RECORD_E_READ when tokens.bin can no longer be read: it is read by ranges, not kept
   */
  tokens(span: Span): Int32Array | null;
  logprobs(span: Span): Float32Array | null;
  issues: RecordIssue[];
  aside: LaidAside[];
}

/**
 * Reads what is there, whatever happened to its writer: a torn last line is dropped, a bad line is skipped, what is
 * unknown is laid aside, each with an issue. Only a record that cannot mean anything is refused. Holds the events; of
 * the files no more than a chunk at a time.
 * @throws TreewardError RECORD_E_MISSING without telemetry.ndjson, RECORD_E_VERSION for another major version, RECORD_E_READ
 */
export function readRecord(directory: string): RolloutRecord {
  const events: RecordEvent[] = [];
  const folder = new RolloutFolder(directory);
  const parser = new EventParser(folder.telemetry, (event) => events.push(event));
  if (!scanLines(folder.telemetry, parser.visit)) throw missingRecord(directory, folder.telemetry);
  const { issues, aside } = parser;
  // Opened after the events: whatever they name was in the file before them.
  const file = new TokenFile(folder.tokens);
  const report = reportTokens(file.path, file.size, issues);
  for (const event of events) visitSpans(event, report);
  return {
    events,
    issues,
    aside,
    tokens: (span) => {
      const bytes = file.read(span);
      return bytes && new Int32Array(bytes);
    },
    logprobs: (span) => {
      const bytes = file.read(span);
      return bytes && new Float32Array(bytes);
    },
  };
}
