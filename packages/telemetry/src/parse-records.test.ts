import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseRecords } from './parse-records.js';
import type { ParseOutcome } from './parse-worker.js';
import { readRecord } from './read-record.js';
import { writeSampleRecord } from './testing/sample-record.js';
import { writeSyntheticRecord } from './testing/synthetic-record.js';
import { viewRecord } from './view-record.js';
import { RecordWriter } from './writer.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'treeward-parse-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Five folders: two good ones, one without a record, one of another version, a good one. */
async function batch(): Promise<string[]> {
  const directories = ['a', 'b', 'missing', 'future', 'e'].map((name) => join(root, name));
  for (const index of [0, 1, 4]) await writeSampleRecord(directories[index]!);
  mkdirSync(directories[3]!);
  writeFileSync(join(directories[3]!, 'telemetry.ndjson'), '{"type":"rollout.start","version":7}\n');
  return directories;
}

describe('parseRecords', { timeout: 60_000 }, () => {
  it('parses on threads what readRecord reads, and lets no bad record sink the others', async () => {
    const directories = await batch();
    const outcomes = await parseRecords(directories, { threads: 2 });
    expect(outcomes.map((outcome) => outcome.directory)).toEqual(directories);
    expect(outcomes.map((outcome) => (outcome.ok ? 'ok' : outcome.error.code))).toEqual([
      'ok',
      'ok',
      'RECORD_E_MISSING',
      'RECORD_E_VERSION',
      'ok',
    ]);
    for (const outcome of outcomes) {
      if (!outcome.ok) {
        expect(Object.getPrototypeOf(outcome.error)).toBe(Object.prototype);
        expect(outcome.error.hints).toHaveLength(1);
        continue;
      }
      const record = readRecord(outcome.directory);
      const view = viewRecord(outcome.record);
      expect(view.events).toEqual(record.events);
      for (const event of record.events) {
        if (event.type !== 'call.sampled') continue;
        expect(view.tokens(event.tokens)).toEqual(record.tokens(event.tokens));
        expect(view.logprobs(event.logprobs)).toEqual(record.logprobs(event.logprobs));
      }
    }
  });

  it('hands outcomes over one by one, never more than threads at a time', async () => {
    const directories = await batch();
    const seen: [number, string][] = [];
    let under = 0;
    let most = 0;
    const kept = await parseRecords(directories, {
      threads: 2,
      onRecord: async (outcome: ParseOutcome, index) => {
        most = Math.max(most, ++under);
        seen.push([index, outcome.directory]);
        await new Promise((resolve) => setTimeout(resolve, 5));
        under--;
      },
    });
    expect(kept).toEqual([]);
    expect(most).toBeLessThanOrEqual(2);
    expect(seen.sort((a, b) => a[0] - b[0])).toEqual(
      directories.map((directory, index) => [index, directory]),
    );
  });

  it('stops when told to, also within a record', async () => {
    const long = join(root, 'long');
    await writeSyntheticRecord(RecordWriter.open(long), { calls: 3000, seed: 1 });
    const controller = new AbortController();
    const reason = new Error('enough');
    let delivered = 0;
    const parsing = parseRecords(Array<string>(200).fill(long), {
      threads: 1,
      signal: controller.signal,
      onRecord: () => {
        // The next record is under way by the time this fires.
        if (++delivered === 2) setTimeout(() => controller.abort(reason), 1);
      },
    });
    await expect(parsing).rejects.toBe(reason);
    expect(delivered).toBeLessThan(200);
    const aborted = parseRecords([long], { signal: AbortSignal.abort(reason) });
    await expect(aborted).rejects.toBe(reason);
  });

  it('can be stopped while its threads start, at any moment, and the process lives', async () => {
    const [directory] = await batch();
    for (let ms = 0; ms < 360; ms += 30) {
      const signal = AbortSignal.timeout(ms);
      // Whether it ends in time is chance; that it ends without an error of its own is not.
      const ended = await parseRecords([directory!, directory!], { threads: 2, signal }).then(
        (outcomes) => outcomes.every(({ ok }) => ok),
        (error: unknown) => error === signal.reason,
      );
      expect(ended).toBe(true);
    }
  });

  it('ends with what onRecord throws', async () => {
    const directories = await batch();
    const onRecord = (): void => {
      throw new RangeError('no room');
    };
    await expect(parseRecords(directories, { threads: 2, onRecord })).rejects.toThrow('no room');
  });

  it('takes no records and no senseless number of threads', async () => {
    expect(await parseRecords([])).toEqual([]);
    for (const threads of [0, 1.5, -1, Number.NaN]) {
      await expect(parseRecords(['x'], { threads })).rejects.toMatchObject({ code: 'RECORD_E_THREADS' });
    }
  });
});
