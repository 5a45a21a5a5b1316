import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isUtf8 } from 'node:buffer';
import { TreewardError } from '@treeward/base';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { flattenRecord } from './flatten-record.js';
import { readRecord, type RolloutRecord } from './read-record.js';
import { eventSchema } from './schema.js';
import { sampleEnd, sampleStart, writeSampleRecord } from './testing/sample-record.js';
import type { RecordEvent } from './types.js';
import { viewRecord } from './view-record.js';
import { RecordWriter } from './writer.js';

// One record, damaged in every way a crash or a disk can; both readers must say the same and keep what is whole.
let root: string;
let damaged: string;
let events: RecordEvent[];
let whole: Buffer;
let tokens: Buffer;
/** Where each line begins, and the end of the file. */
let begins: number[];

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'treeward-fuzz-'));
  damaged = join(root, 'damaged');
  mkdirSync(damaged);
  events = await writeSampleRecord(join(root, 'whole'));
  whole = readFileSync(join(root, 'whole', 'telemetry.ndjson'));
  tokens = readFileSync(join(root, 'whole', 'tokens.bin'));
  begins = [0, ...[...whole.keys()].filter((at) => whole[at] === 0x0a).map((at) => at + 1)];
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function read(lines: Uint8Array, sidecar: Uint8Array = tokens): RolloutRecord {
  writeFileSync(join(damaged, 'telemetry.ndjson'), lines);
  writeFileSync(join(damaged, 'tokens.bin'), sidecar);
  const record = readRecord(damaged);
  const view = viewRecord(flattenRecord(damaged));
  expect(view.events).toEqual(record.events);
  expect(view.issues).toEqual(record.issues);
  expect(view.aside).toEqual(record.aside);
  return record;
}

describe('a damaged record', { timeout: 60_000 }, () => {
  it('cut at every byte keeps every whole line and reports the rest', () => {
    for (let cut = 0; cut <= whole.length; cut++) {
      const record = read(whole.subarray(0, cut));
      const ended = begins.filter((begin) => begin > 0 && begin <= cut).length;
      const inside = cut - begins[ended]!;
      // Only the newline is missing: the event is whole.
      const kept = ended < events.length && cut === begins[ended + 1]! - 1 ? ended + 1 : ended;
      expect(record.events).toEqual(events.slice(0, kept));
      expect(record.issues.map(({ code, line }) => [code, line])).toEqual(
        kept > ended || inside === 0 ? [] : [['RECORD_TORN_TAIL', ended + 1]],
      );
    }
  });

  it('cut at every byte and continued loses that line only', async () => {
    for (let cut = 1; cut < whole.length; cut += 7) {
      writeFileSync(join(damaged, 'telemetry.ndjson'), whole.subarray(0, cut));
      const writer = RecordWriter.open(damaged);
      writer.append(sampleEnd);
      await writer.close();
      const record = read(readFileSync(join(damaged, 'telemetry.ndjson')));
      const ended = begins.filter((begin) => begin > 0 && begin <= cut).length;
      const kept = cut === begins[ended + 1]! - 1 ? ended + 1 : ended;
      expect(record.events).toEqual([...events.slice(0, kept), sampleEnd]);
      const torn = kept === ended && cut > begins[ended]!;
      expect(record.issues.map(({ code }) => code)).toEqual(torn ? ['RECORD_BAD_LINE'] : []);
    }
  });

  it('with any byte changed loses that line at most, or is refused for its version', () => {
    let unharmed = 0;
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, by) => {
        const bytes = Buffer.from(whole);
        bytes[at] = bytes[at]! ^ by;
        const hit = begins.findLastIndex((begin) => begin <= at);
        let record: RolloutRecord;
        try {
          record = read(bytes);
        } catch (error) {
          if (!TreewardError.isInstance(error)) throw error;
          expect(error.code).toBe('RECORD_E_VERSION');
          expect(hit).toBe(0);
          return;
        }
        // A newline may become part of a line (both are lost) or a line may be cut in two; all others are there.
        const lost = whole[at] === 0x0a && hit + 1 < events.length ? [hit, hit + 1] : [hit];
        const others = events.filter((_, index) => !lost.includes(index));
        expect(record.events).toEqual(expect.arrayContaining(others));
        expect(record.events.length).toBeLessThanOrEqual(events.length);
        for (const event of record.events) expect(eventSchema.safeParse(event).success).toBe(true);
        if (!isUtf8(bytes)) expect(record.events).toHaveLength(events.length - lost.length);
        if (record.events.length < events.length) expect(record.issues.length).toBeGreaterThan(0);
        else unharmed++;
      }),
      { numRuns: 1000 },
    );
    expect(unharmed).toBeGreaterThan(0); // a letter of a text for another: nothing can see that
  });

  it('with lines twice, swapped and left out is those lines', () => {
    const lines = begins.slice(0, -1).map((begin, index) => whole.subarray(begin, begins[index + 1]));
    fc.assert(
      fc.property(fc.array(fc.nat(lines.length - 1), { maxLength: 20 }), (order) => {
        const record = read(Buffer.concat(order.map((index) => lines[index]!)));
        expect(record.events).toEqual(order.map((index) => events[index]));
        expect(record.issues).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  it('with tokens.bin cut at every byte gives whole spans or null, and reports each it cannot', () => {
    for (let cut = 0; cut <= tokens.length; cut++) {
      const record = read(whole, tokens.subarray(0, cut));
      const spans = events.flatMap((event) =>
        event.type === 'call.prompt'
          ? [event.prompt.appended]
          : event.type === 'call.sampled'
            ? [event.tokens, event.logprobs]
            : [],
      );
      expect(spans).toHaveLength(3);
      const inside = spans.filter(({ offset, count }) => offset + 4 * count <= cut);
      for (const span of spans) {
        const ids = record.tokens(span);
        if (!inside.includes(span)) expect(ids).toBeNull();
        else
          expect(Buffer.from(ids!.buffer)).toEqual(
            tokens.subarray(span.offset, span.offset + 4 * span.count),
          );
      }
      expect(record.issues.map(({ code }) => code)).toEqual(
        Array<string>(3 - inside.length).fill('RECORD_SPAN_OUTSIDE'),
      );
    }
  });

  it('made of arbitrary bytes never throws anything but a refusal', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constantFrom(0x0a))), (parts) => {
        const bytes = Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : part)));
        const record = read(Buffer.concat([Buffer.from(`${JSON.stringify(sampleStart)}\n`), bytes]));
        expect(record.events).toEqual([sampleStart]);
      }),
    );
  });

  it('is a record of 10⁶ nested brackets or of one line longer than any chunk', () => {
    const deep = Buffer.from(`{"type":"engine","time":1,"facts":${'['.repeat(1e6)}${']'.repeat(1e6)}}\n`);
    const long = { type: 'engine', time: 2, facts: 'é'.repeat(3 << 20) } satisfies RecordEvent;
    const record = read(Buffer.concat([whole, deep, Buffer.from(`${JSON.stringify(long)}\n`), whole]));
    expect(record.events).toEqual([...events, long, ...events]);
    expect(record.issues.map(({ code, line }) => [code, line])).toEqual([
      ['RECORD_BAD_LINE', events.length + 1],
    ]);
  });
});

describe('a record of an older minor', () => {
  it('reads as it always did', () => {
    const fixture = join(import.meta.dirname, '__fixtures__', 'minor-0');
    for (const name of ['telemetry.ndjson', 'tokens.bin'])
      copyFileSync(join(fixture, name), join(damaged, name));
    const lines = readFileSync(join(fixture, 'telemetry.ndjson'), 'utf8').trim().split('\n');
    const record = readRecord(damaged);
    expect(record.events).toEqual(lines.map((line) => JSON.parse(line)));
    expect([record.issues, record.aside]).toEqual([[], []]);
    expect(record.events[0]).not.toHaveProperty('minor');
    const sampled = record.events.filter((event) => event.type === 'call.sampled');
    expect(sampled.map(({ tokens }) => [...record.tokens(tokens)!])).toEqual([
      [11, 12, 2],
      [21, 2],
    ]);
    expect(sampled.map(({ logprobs }) => [...record.logprobs(logprobs)!])).toEqual([
      [-0.5, -0.25, -0.125],
      [-1, -2],
    ]);
  });
});
