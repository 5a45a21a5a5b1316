import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  createReadStream,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readRecord } from './read-record.js';
import type { CallPrompt, CallSampled, RecordEvent, RolloutStart } from './types.js';
import { RecordWriter } from './writer.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'treeward-writer-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const start: RolloutStart = {
  type: 'rollout.start',
  version: 1,
  rolloutId: 'r1',
  time: 1,
  template: 'compact',
  labels: { task: 't' },
};
const exit: RecordEvent = { type: 'process.exit', time: 2, code: 0, signal: null, timedOut: false };
const lines = (): string[] => readFileSync(join(directory, 'telemetry.ndjson'), 'utf8').split('\n');

describe('RecordWriter', () => {
  it('writes one line per event and little-endian arrays by byte offset', async () => {
    const writer = RecordWriter.open(directory);
    const ids = Int32Array.of(7, -1, 300);
    const tokens = writer.tokens(ids);
    ids.fill(0); // the writer has its own copy
    const logprobs = writer.logprobs(Float32Array.of(-0.5, -1, -2));
    const sampled: CallSampled = {
      type: 'call.sampled',
      call: 0,
      time: 3,
      tokens,
      logprobs,
      finish: 'stop',
      policy: { id: 'p', version: 4 },
      sampling: { temperature: 1 },
      reply: { parts: [{ type: 'text', text: 'two\nlines' }] },
    };
    writer.append(start);
    writer.append(sampled);
    await writer.close();
    await writer.close();

    expect(tokens).toEqual({ offset: 0, count: 3 });
    expect(logprobs).toEqual({ offset: 12, count: 3 });
    const bytes = readFileSync(join(directory, 'tokens.bin'));
    expect([0, 4, 8].map((at) => bytes.readInt32LE(at))).toEqual([7, -1, 300]);
    expect([12, 16, 20].map((at) => bytes.readFloatLE(at))).toEqual([-0.5, -1, -2]);
    expect(lines()).toEqual([JSON.stringify(start), JSON.stringify(sampled), '']);
  });

  it('has the tokens in the file whenever an event that names them is there', async () => {
    const writer = RecordWriter.open(directory);
    let stop = false;
    const watch = (async () => {
      let seen = 0;
      while (!stop) {
        let text = '';
        try {
          text = readFileSync(join(directory, 'telemetry.ndjson'), 'utf8');
        } catch {
          // not created yet
        }
        const size = statSync(join(directory, 'tokens.bin')).size;
        for (const line of text.split('\n').slice(0, -1)) {
          const { prompt } = JSON.parse(line).prompt ? JSON.parse(line) : { prompt: null };
          if (prompt) {
            seen++;
            expect(prompt.appended.offset + 4 * prompt.appended.count).toBeLessThanOrEqual(size);
          }
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
      return seen;
    })();
    for (let call = 0; call < 50; call++) {
      const appended = writer.tokens(new Int32Array(1000).fill(call));
      writer.append({
        type: 'call.prompt',
        call,
        prompt: { parent: null, kept: 0, appended, length: 1000, hash: 'h' },
        graft: { reason: 'root', keptMessages: 0 },
      });
      await new Promise((resolve) => setImmediate(resolve));
    }
    await writer.flush();
    await new Promise((resolve) => setTimeout(resolve, 20));
    stop = true;
    expect(await watch).toBeGreaterThan(0);
    await writer.close();
  });

  it('continues a record that another process left', async () => {
    const first = RecordWriter.open(directory);
    first.tokens(Int32Array.of(1, 2));
    first.append(start);
    await first.close();
    const second = RecordWriter.open(directory);
    expect(second.tokens(Int32Array.of(3)).offset).toBe(8);
    second.append(exit);
    await second.close();
    expect(lines()).toEqual([JSON.stringify(start), JSON.stringify(exit), '']);
  });

  it('closes a torn tail instead of growing it', async () => {
    const first = RecordWriter.open(directory);
    first.tokens(Int32Array.of(1, 2));
    first.append(start);
    await first.close();
    appendFileSync(join(directory, 'telemetry.ndjson'), '{"type":"call.st');
    truncateSync(join(directory, 'tokens.bin'), 6);
    const second = RecordWriter.open(directory);
    expect(second.tokens(Int32Array.of(3)).offset).toBe(8);
    second.append(exit);
    await second.close();
    expect(lines()).toEqual([JSON.stringify(start), '{"type":"call.st', JSON.stringify(exit), '']);
    expect(statSync(join(directory, 'tokens.bin')).size).toBe(12);
  });

  it('refuses events that break the schema, and use after close', async () => {
    const writer = RecordWriter.open(directory);
    expect(() => writer.append({ ...start, time: 'now' } as unknown as RecordEvent)).toThrow(
      expect.objectContaining({ code: 'RECORD_E_EVENT' }),
    );
    expect(() => writer.append({ ...start, extra: 1 } as unknown as RecordEvent)).toThrow(/extra/);
    expect(() => writer.append({ type: 'new' } as unknown as RecordEvent)).toThrow(/"new"/);
    await writer.close();
    expect(() => writer.append(exit)).toThrow(expect.objectContaining({ code: 'RECORD_E_CLOSED' }));
    expect(lines()).toEqual(['']);
  });

  it('names a directory it cannot use', () => {
    const file = join(directory, 'file');
    appendFileSync(file, 'x');
    expect(() => RecordWriter.open(file)).toThrow(expect.objectContaining({ code: 'RECORD_E_OPEN' }));
  });
});

describe('back-pressure', () => {
  const big = (bytes: number): RecordEvent => ({ type: 'engine', time: 1, facts: 'x'.repeat(bytes) });

  it('makes who drains wait for a slow disk, and lets it go on below the mark', async () => {
    // A pipe holds 64 KiB and then takes nothing until somebody reads: as slow as a disk can be.
    const pipe = join(directory, 'telemetry.ndjson');
    execFileSync('mkfifo', [pipe]);
    const highWater = 100_000;
    const writer = RecordWriter.open(directory, { highWater });
    await writer.drain(); // nothing queued, nothing to wait for
    let sent = 0;
    while (writer.buffered < highWater) {
      writer.append(big(50_000));
      sent++;
    }
    for (let i = 0; i < 6; i++, sent++) writer.append(big(50_000));
    let drained = false;
    const draining = writer.drain().then(() => (drained = true));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(drained).toBe(false);
    expect(writer.buffered).toBeGreaterThanOrEqual(highWater);

    const reader = createReadStream(pipe);
    let received = '';
    reader.setEncoding('utf8').on('data', (text) => (received += text));
    await draining;
    expect(writer.buffered).toBeLessThan(highWater);
    await writer.flush();
    expect(writer.buffered).toBe(0);
    await writer.close();
    while (received.split('\n').length - 1 < sent) await new Promise((resolve) => setTimeout(resolve, 5));
    reader.destroy();
    expect(received.split('\n').slice(0, -1)).toEqual(Array<string>(sent).fill(JSON.stringify(big(50_000))));
  });

  it('never holds more than the mark and one event when every append is drained', async () => {
    const highWater = 64 << 10;
    const writer = RecordWriter.open(directory, { highWater });
    let most = 0;
    for (let call = 0; call < 200; call++) {
      writer.tokens(new Int32Array(2000));
      writer.append(big(10_000));
      most = Math.max(most, writer.buffered);
      await writer.drain();
    }
    await writer.close();
    expect(most).toBeGreaterThan(highWater); // it did fill up
    expect(most).toBeLessThan(highWater + 20_000);
    expect(statSync(join(directory, 'tokens.bin')).size).toBe(200 * 8000);
    expect(lines()).toHaveLength(201);
  });
});

describe('a full disk', () => {
  const failure = { code: 'RECORD_E_WRITE', message: expect.stringContaining('ENOSPC') };

  it('fails every later use with RECORD_E_WRITE and lets nobody wait', async () => {
    symlinkSync('/dev/full', join(directory, 'telemetry.ndjson'));
    const writer = RecordWriter.open(directory, { highWater: 1 });
    writer.append(start);
    await expect(writer.drain()).rejects.toMatchObject(failure);
    await expect(writer.flush()).rejects.toMatchObject(failure);
    expect(() => writer.append(exit)).toThrow(expect.objectContaining({ code: 'RECORD_E_WRITE' }));
    expect(() => writer.tokens(Int32Array.of(1))).toThrow(
      expect.objectContaining({ code: 'RECORD_E_WRITE' }),
    );
    expect(writer.buffered).toBe(0);
    await expect(writer.close()).rejects.toMatchObject(failure);
    await writer.close(); // closed all the same
  });

  const mounted = mountTmpfs();
  it.skipIf(mounted === null)(
    `leaves a readable record${mounted === null ? ' (SKIPPED: mounting a tmpfs needs root)' : ''}`,
    async () => {
      try {
        const folder = join(mounted!, 'record');
        const writer = RecordWriter.open(folder);
        let failed: unknown = null;
        let appended = 0;
        while (failed === null) {
          try {
            const tokens = writer.tokens(Int32Array.of(appended, 7));
            const prompt = { parent: null, kept: 0, appended: tokens, length: 2, hash: 'x'.repeat(700) };
            writer.append({
              type: 'call.prompt',
              call: appended,
              prompt,
              graft: { reason: 'root', keptMessages: 0 },
            });
            appended++;
            await writer.flush();
          } catch (error) {
            failed = error;
          }
        }
        expect(failed).toMatchObject(failure);
        await expect(writer.close()).rejects.toMatchObject(failure);
        const record = readRecord(folder);
        expect(record.events.length).toBeGreaterThan(10);
        expect(record.events.length).toBeGreaterThanOrEqual(appended - 2);
        record.events.forEach((event, call) => {
          const { prompt } = event as CallPrompt;
          expect(record.tokens(prompt.appended)).toEqual(Int32Array.of(call, 7));
        });
        expect(record.issues.map(({ code }) => code).filter((code) => code !== 'RECORD_TORN_TAIL')).toEqual(
          [],
        );
      } finally {
        execFileSync('umount', [mounted!]);
        rmSync(mounted!, { recursive: true, force: true });
      }
    },
  );
});

/** 64 KiB of disk; null where this user may not mount. */
function mountTmpfs(): string | null {
  const at = mkdtempSync(join(tmpdir(), 'treeward-full-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', at], { stdio: 'pipe' });
    return at;
  } catch {
    rmSync(at, { recursive: true });
    return null;
  }
}
