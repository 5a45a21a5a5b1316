import { appendFileSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buffersOf, EVENT_TYPES } from './flat-record.js';
import { flattenRecord } from './flatten-record.js';
import { readRecord } from './read-record.js';
import { eventSchemas } from './schema.js';
import { arbitraryEvent } from './testing/arbitrary-event.js';
import { sampleEnd, writeSampleRecord } from './testing/sample-record.js';
import { eventOf, viewRecord } from './view-record.js';
import { RecordWriter } from './writer.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'treeward-flat-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe('flattenRecord', { timeout: 60_000 }, () => {
  it('numbers the types as the schema names them', () => {
    expect([...EVENT_TYPES].sort()).toEqual(Object.keys(eventSchemas).sort());
  });

  it('says in columns what the events say', async () => {
    await writeSampleRecord(directory);
    const flat = flattenRecord(directory);
    expect(Array.from(flat.type_E, (type) => EVENT_TYPES[type])).toEqual([
      'rollout.start',
      'call.start',
      'call.prompt',
      'call.sampled',
      'call.end',
      'rollout.end',
    ]);
    expect([...flat.line_E]).toEqual([1, 2, 3, 4, 5, 6]);
    expect([flat.event_A, flat.event_P, flat.event_S, flat.event_D].map((rows) => [...rows])).toEqual([
      [1],
      [2],
      [3],
      [4],
    ]);
    const { messagesParent_A, messagesAppended_A, parent_P, appendedOffset_P, appendedCount_P, length_P } =
      flat;
    expect([messagesParent_A[0], messagesAppended_A[0], parent_P[0]]).toEqual([-1, 1, -1]);
    expect([appendedOffset_P[0], appendedCount_P[0], length_P[0]]).toEqual([0, 3, 3]);
    expect([flat.tokensOffset_S[0], flat.tokensCount_S[0], flat.logprobsOffset_S[0]]).toEqual([12, 2, 20]);
    expect([flat.firstByte_D[0], flat.status_D[0], flat.time_D[0]]).toEqual([Number.NaN, 200, 4]);
    const { dialectName_A, toolsName_A, reasonName_P, finishName_S, policyName_S, deliveryName_D } = flat;
    const named = [dialectName_A, toolsName_A, reasonName_P, finishName_S, policyName_S, deliveryName_D];
    expect(named.map((column) => flat.names[column[0]!])).toEqual([
      'openai',
      'none',
      'root',
      'stop',
      'p',
      'none',
    ]);
    expect(flat.names[flat.causeName_D[0]!]).toBe('client');
  });

  it('is the record that readRecord reads, whatever the events', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(arbitraryEvent, { maxLength: 12 }),
        fc.array(
          fc.constantFrom(
            '{"type":"call.st',
            '[]',
            '',
            '{"type":"gpu","n":1}',
            '{"type":"rollout.end","time":1,"status":"failed","x":2}',
          ),
        ),
        async (events, junk) => {
          rmSync(directory, { recursive: true, force: true });
          const writer = RecordWriter.open(directory);
          for (const event of events) writer.append(event);
          await writer.close();
          for (const line of junk) appendFileSync(join(directory, 'telemetry.ndjson'), `${line}\n`);
          const record = readRecord(directory);
          const view = viewRecord(flattenRecord(directory));
          expect(view.events).toEqual(record.events);
          expect(view.events.slice(0, events.length)).toEqual(events);
          expect(view.issues).toEqual(record.issues);
          expect(view.aside).toEqual(record.aside);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('gives tokens without copying them, and none where tokens.bin ends', async () => {
    await writeSampleRecord(directory);
    const flat = flattenRecord(directory);
    const view = viewRecord(flat);
    expect(view.tokens({ offset: 12, count: 2 })).toEqual(Int32Array.of(5, 6));
    expect(view.logprobs({ offset: 20, count: 2 })).toEqual(Float32Array.of(-0.25, Number.NaN));
    expect(view.tokens({ offset: 12, count: 2 })!.buffer).toBe(flat.sidecar.buffer);
    truncateSync(join(directory, 'tokens.bin'), 21);
    const shorter = viewRecord(flattenRecord(directory));
    expect(shorter.logprobs({ offset: 20, count: 2 })).toBeNull();
    expect(shorter.tokens({ offset: 2, count: 1 })).toBeNull();
    expect(shorter.issues).toEqual(readRecord(directory).issues);
    expect(shorter.issues.map(({ code }) => code)).toEqual(['RECORD_SPAN_OUTSIDE']);
    rmSync(join(directory, 'tokens.bin'));
    const bare = flattenRecord(directory);
    expect(bare.issues).toEqual(readRecord(directory).issues);
    expect(bare.issues[0]!.code).toBe('RECORD_NO_TOKENS');
  });

  it('can be handed over whole', async () => {
    await writeSampleRecord(directory);
    const flat = flattenRecord(directory);
    const copy = structuredClone(flat);
    const moved = structuredClone(flat, { transfer: buffersOf(flat) });
    expect(flat.text.byteLength + flat.sidecar.byteLength + flat.call_A.byteLength).toBe(0);
    expect(moved).toEqual(copy);
    expect(eventOf(moved, 5)).toEqual(sampleEnd);
  });
});
