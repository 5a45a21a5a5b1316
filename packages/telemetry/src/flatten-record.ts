import { RolloutFolder } from '@treeward/base';
import { FlatColumns, type FlatRecord } from './flat-record.js';
import { EventParser, missingRecord } from './parse-events.js';
import { readWhole, visitLines } from './scan-lines.js';
import { reportTokens } from './token-file.js';

/**
 * Reads one record into flat arrays; lenient as `readRecord`, with the same issues. Holds the two files once, and of the
 * parsed events one at a time.
 * @throws TreewardError RECORD_E_MISSING, RECORD_E_VERSION, RECORD_E_READ
 */
export function flattenRecord(directory: string): FlatRecord {
  const folder = new RolloutFolder(directory);
  const bytes = readWhole(folder.telemetry);
  if (!bytes) throw missingRecord(directory, folder.telemetry);
  const columns = new FlatColumns();
  // Lines that lost a field are written anew, behind the file's own.
  const rewritten: Buffer[] = [];
  let length = bytes.length;
  const parser = new EventParser(folder.telemetry, (event, line, verbatim, start, end) => {
    if (verbatim) {
      columns.add(event, line, start, end);
    } else {
      const text = Buffer.from(JSON.stringify(event));
      rewritten.push(text);
      columns.add(event, line, length, (length += text.length));
    }
  });
  const rest = visitLines(bytes, 0, bytes.length, parser.visit);
  if (rest < bytes.length) parser.visit(bytes, rest, bytes.length, false);

  const sidecar = readWhole(folder.tokens);
  const arrays = columns.finish();
  const { issues, aside } = parser;
  reportSpans(arrays, reportTokens(folder.tokens, sidecar?.length ?? null, issues));
  return {
    directory,
    text: asBytes(rewritten.length === 0 ? bytes : joined(bytes, rewritten, length)),
    ...arrays,
    sidecar: sidecar ? asBytes(sidecar) : new Uint8Array(0),
    issues,
    aside,
  };
}

/** Not a Buffer: what crosses between threads arrives without its prototype. */
function asBytes({ buffer, byteOffset, byteLength }: Buffer<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function joined(first: Buffer, rest: readonly Buffer[], length: number): Buffer<ArrayBuffer> {
  const whole = Buffer.allocUnsafeSlow(length);
  let at = first.copy(whole);
  for (const part of rest) at += part.copy(whole, at);
  return whole;
}

type SpanColumns = Omit<FlatRecord, 'directory' | 'text' | 'sidecar' | 'issues' | 'aside'>;

/** In file order, as `readRecord` reports them. */
function reportSpans(flat: SpanColumns, report: ReturnType<typeof reportTokens>): void {
  const { event_P, event_S } = flat;
  for (let p = 0, s = 0; p < event_P.length || s < event_S.length;) {
    if ((event_P[p] ?? Infinity) < (event_S[s] ?? Infinity)) {
      const span = { offset: flat.appendedOffset_P[p]!, count: flat.appendedCount_P[p]! };
      report(flat.call_P[p]!, 'prompt ids', span);
      p++;
    } else {
      const call = flat.call_S[s]!;
      report(call, 'sampled ids', { offset: flat.tokensOffset_S[s]!, count: flat.tokensCount_S[s]! });
      report(call, 'logprobs', { offset: flat.logprobsOffset_S[s]!, count: flat.logprobsCount_S[s]! });
      s++;
    }
  }
}
