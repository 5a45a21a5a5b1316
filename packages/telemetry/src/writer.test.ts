import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CallSampled, RecordEvent, RolloutStart } from './types.js';
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
