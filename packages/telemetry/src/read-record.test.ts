import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readRecord } from './read-record.js';
import type { CallSampled, RecordEvent, RolloutStart } from './types.js';
import { RecordWriter } from './writer.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'treeward-reader-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));
const events = (): string => join(directory, 'telemetry.ndjson');
const tokens = (): string => join(directory, 'tokens.bin');

const start: RolloutStart = {
  type: 'rollout.start',
  version: 1,
  rolloutId: 'r1',
  time: 1,
  template: 'compact',
  labels: {},
};
const end: RecordEvent = { type: 'rollout.end', time: 9, status: 'completed' };

async function writeSample(): Promise<CallSampled> {
  const writer = RecordWriter.open(directory);
  writer.append(start);
  const sampled: CallSampled = {
    type: 'call.sampled',
    call: 0,
    time: 3,
    tokens: writer.tokens(Int32Array.of(5, 6)),
    logprobs: writer.logprobs(Float32Array.of(-0.25, Number.NaN)),
    finish: 'stop',
    policy: { id: 'p', version: 0 },
    sampling: { temperature: 1 },
    reply: { parts: [{ type: 'text', text: 'Grüße' }] },
  };
  writer.append(sampled);
  await writer.close();
  return sampled;
}

describe('readRecord', () => {
  it('gives back what was written, also across processes', async () => {
    const sampled = await writeSample();
    const later = RecordWriter.open(directory);
    later.append(end);
    await later.close();
    const record = readRecord(directory);
    expect(record.events).toEqual([start, sampled, end]);
    expect(record.issues).toEqual([]);
    expect(record.tokens(sampled.tokens)).toEqual(Int32Array.of(5, 6));
    expect(record.logprobs(sampled.logprobs)).toEqual(Float32Array.of(-0.25, Number.NaN));
  });

  it('drops a torn tail wherever the writer was killed', async () => {
    const sampled = await writeSample();
    const whole = readFileSync(events());
    const first = whole.indexOf(0x0a) + 1;
    fc.assert(
      fc.property(fc.integer({ min: first + 1, max: whole.length - 2 }), (cut) => {
        writeFileSync(events(), whole.subarray(0, cut));
        const record = readRecord(directory);
        expect(record.events).toEqual([start]);
        expect(record.issues.map((issue) => issue.code)).toEqual(['RECORD_TORN_TAIL']);
      }),
      { numRuns: 50 },
    );
    writeFileSync(events(), whole.subarray(0, -1)); // only the newline is missing: the event is whole
    expect(readRecord(directory).events).toEqual([start, sampled]);
  });

  it('skips a bad line in the middle and says which', async () => {
    await writeSample();
    appendFileSync(events(), '{"type":"call.st\n[1]\n{"call":1}\n{"type":"call.end","call":-1}\n');
    appendFileSync(events(), JSON.stringify(end) + '\n');
    const record = readRecord(directory);
    expect(record.events.map((event) => event.type)).toEqual([
      'rollout.start',
      'call.sampled',
      'rollout.end',
    ]);
    expect(record.issues.map(({ code, line }) => [code, line])).toEqual([
      ['RECORD_BAD_LINE', 3],
      ['RECORD_BAD_LINE', 4],
      ['RECORD_BAD_LINE', 5],
      ['RECORD_BAD_LINE', 6],
    ]);
  });

  it('lays aside what a later minor may add, and says so once', async () => {
    const sampled = await writeSample();
    const richer = { ...sampled, call: 1, cache: 3, policy: { ...sampled.policy, adapter: 'x' } };
    appendFileSync(events(), `${JSON.stringify(richer)}\n${JSON.stringify({ ...richer, call: 2 })}\n`);
    appendFileSync(events(), '{"type":"gpu.sample","pid":3}\n{"type":"gpu.sample","pid":4}\n');
    const record = readRecord(directory);
    expect(record.events).toEqual([start, sampled, { ...sampled, call: 1 }, { ...sampled, call: 2 }]);
    expect(record.issues.map((issue) => [issue.severity, issue.message])).toEqual([
      ['info', 'field call.sampled.policy.adapter is unknown here and laid aside'],
      ['info', 'field call.sampled.cache is unknown here and laid aside'],
      ['info', 'event "gpu.sample" is unknown here and laid aside'],
    ]);
    expect(record.aside).toHaveLength(6);
    expect(record.aside.at(-1)).toEqual({ line: 6, value: { type: 'gpu.sample', pid: 4 } });
  });

  it('reports spans outside tokens.bin and gives no tokens for them', async () => {
    const sampled = await writeSample();
    truncateSync(tokens(), 10);
    const record = readRecord(directory);
    expect(record.tokens(sampled.tokens)).toEqual(Int32Array.of(5, 6));
    expect(record.logprobs(sampled.logprobs)).toBeNull();
    expect(record.issues.map(({ code, call }) => [code, call])).toEqual([['RECORD_SPAN_OUTSIDE', 0]]);
    rmSync(tokens());
    expect(readRecord(directory).issues.map((issue) => issue.code)).toEqual([
      'RECORD_NO_TOKENS',
      'RECORD_SPAN_OUTSIDE',
      'RECORD_SPAN_OUTSIDE',
    ]);
  });

  it('refuses what cannot mean anything', () => {
    expect(() => readRecord(directory)).toThrow(expect.objectContaining({ code: 'RECORD_E_MISSING' }));
    writeFileSync(events(), JSON.stringify({ ...start, version: 2 }) + '\n');
    expect(() => readRecord(directory)).toThrow(expect.objectContaining({ code: 'RECORD_E_VERSION' }));
  });
});
