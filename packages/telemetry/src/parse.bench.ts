// Parsing of records, flat arrays out. Method: check first that the flat record says what the lines say (nothing is timed
// otherwise). `parse/vs_json_parse`: `flattenRecord` (both files read, UTF-8 check, validation, columns) and a plain loop of
// JSON.parse over telemetry.ndjson of the same record (read, split at newlines, decoded, parsed, thrown away) in turns, in one
// process, by CPU time of the process, garbage collector threads included. tokens.bin is read by both, so that the ratio is
// about lines. value and ratio are medians over the turns, the ratio of each turn's own pair, so that a busy neighbour slows
// both halves of it. MB/s counts bytes of telemetry.ndjson. Scaling is wall time of parseRecords over equal records, so it
// shows the machine's other load. Memory: peak resident set of a fresh process over what it had after parsing a small
// record, ÷ bytes of both files.
// Run: npx nx run telemetry:bench -- [--quick] [--out FILE]
import { fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { writeBenchRows, type BenchRow } from '@treeward/base';
import { eventOf, flattenRecord, parseRecords, readRecord, RecordWriter } from '@treeward/telemetry';
import { writeSyntheticRecord } from './testing/synthetic-record.js';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    out: { type: 'string' },
    peak: { type: 'string' }, // internal: parse this directory, in the way named by `how`, and send the peak
    how: { type: 'string' },
    warm: { type: 'string' },
  },
});

const events = (directory: string): string => join(directory, 'telemetry.ndjson');
const bytesOf = (directory: string): number =>
  statSync(events(directory)).size + statSync(join(directory, 'tokens.bin')).size;

/** The baseline: every line of telemetry.ndjson by JSON.parse. */
function plainLoop(directory: string, visit?: (value: unknown) => void): number {
  const bytes = readFileSync(events(directory));
  consume(readFileSync(join(directory, 'tokens.bin')).length > 0);
  let lines = 0;
  for (let start = 0; start < bytes.length;) {
    const newline = bytes.indexOf(0x0a, start);
    const value: unknown = JSON.parse(bytes.toString('utf8', start, newline));
    visit?.(value);
    start = newline + 1;
    lines++;
  }
  return lines;
}

function cpuSeconds(run: () => unknown): number {
  const start = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

if (values.peak !== undefined) await sendPeak(values.peak, values.how!, values.warm!);
else await main();

async function sendPeak(directory: string, how: string, warm: string): Promise<void> {
  const parse = async (from: string): Promise<void> => {
    if (how === 'flat') {
      await parseRecords([from], { threads: 1, onRecord: (outcome) => consume(outcome.ok) });
      return;
    }
    const record = readRecord(from);
    for (const event of record.events) {
      if (event.type === 'call.sampled') consume(record.tokens(event.tokens) !== null);
    }
  };
  await parse(warm);
  const before = process.resourceUsage().maxRSS;
  await parse(directory);
  process.send!({ bytes: 1024 * (process.resourceUsage().maxRSS - before) });
}

function consume(fine: boolean): void {
  if (!fine) throw new Error('a synthetic record was not parsed');
}

function peak(directory: string, how: string, warm: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = fork(process.argv[1]!, ['--peak', directory, '--how', how, '--warm', warm]);
    child.once('message', (message: { bytes: number }) => resolve(message.bytes));
    child.once('exit', (code) => reject(new Error(`the measured process ended with ${code}`)));
  });
}

async function main(): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'treeward-parse-bench-'));
  const rows: BenchRow[] = [];
  const add: Add = (name, value, unit, better, n, more) => {
    rows.push({ name, value, unit, better, n, ...more });
    const ratio = more.ratio === undefined ? '' : `  ratio ${more.ratio.toFixed(3)}`;
    console.log(`${name.padEnd(34)} ${value.toPrecision(4).padStart(9)} ${unit}  n=${n}${ratio}`);
  };
  try {
    const small = join(scratch, 'small');
    await writeSyntheticRecord(RecordWriter.open(small), { calls: 100, seed: 1 });
    const calls = values.quick ? 4000 : 16_000;
    const record = join(scratch, 'record');
    await writeSyntheticRecord(RecordWriter.open(record), { calls, seed: 3 });
    const lineBytes = statSync(events(record)).size;
    checkParity(record);

    const config = { calls, lineBytes, recordBytes: bytesOf(record) };
    const turns = values.quick ? 15 : 31;
    const ours: number[] = [];
    const plain: number[] = [];
    for (let turn = -2; turn < turns; turn++) {
      const a = cpuSeconds(() => flattenRecord(record));
      const b = cpuSeconds(() => plainLoop(record));
      if (turn < 0) continue; // until the compiler has seen both
      ours.push(a);
      plain.push(b);
    }
    add('parse/json_parse_mb_per_s', lineBytes / 1e6 / median(plain), 'MB/s', 'higher', turns, { config });
    add('parse/vs_json_parse', lineBytes / 1e6 / median(ours), 'MB/s', 'higher', turns, {
      against: 'JSON.parse of every line of the same telemetry.ndjson, one thread, CPU time',
      ratio: median(ours.map((seconds, i) => plain[i]! / seconds)),
      config: { ...config, tokensRead: 'by both' },
    });
    await scaling(record, config, add);

    const long = join(scratch, 'long');
    const longCalls = values.quick ? 25_000 : 100_000;
    await writeSyntheticRecord(RecordWriter.open(long), { calls: longCalls, seed: 5 });
    const size = bytesOf(long);
    for (const [how, name] of [
      ['flat', 'parse/peak_memory/of_record'],
      ['events', 'parse/peak_memory_read_record/of_record'],
    ] as const) {
      const bytes = await peak(long, how, small);
      add(name, bytes / 1e6, 'MB', 'lower', 1, {
        against: 'telemetry.ndjson + tokens.bin',
        ratio: bytes / size,
        config: { calls: longCalls, recordBytes: size },
      });
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  if (values.out) writeBenchRows(values.out, rows);
}

/** @throws Error when the flat record differs from its lines: nothing is timed then */
function checkParity(directory: string): void {
  const flat = flattenRecord(directory);
  let index = 0;
  plainLoop(directory, (value) => {
    if (!isDeepStrictEqual(eventOf(flat, index), value)) {
      throw new Error(`event ${index} differs from its line`);
    }
    index++;
  });
  if (index !== flat.type_E.length || flat.issues.length > 0)
    throw new Error('the flat record is not the record');
}

type Add = (
  name: string,
  value: number,
  unit: string,
  better: BenchRow['better'],
  n: number,
  more: Pick<BenchRow, 'against' | 'ratio' | 'config'>,
) => void;

async function scaling(record: string, config: NonNullable<BenchRow['config']>, add: Add): Promise<void> {
  const copies = Array<string>(values.quick ? 8 : 16).fill(record);
  const rounds = values.quick ? 3 : 7;
  const wall: Record<number, number[]> = { 1: [], 2: [] };
  for (let round = 0; round < rounds; round++) {
    for (const threads of [1, 2]) {
      const start = performance.now();
      await parseRecords(copies, { threads, onRecord: (outcome) => consume(outcome.ok) });
      wall[threads]!.push((performance.now() - start) / 1000);
    }
  }
  const bytes = copies.length * statSync(events(record)).size;
  for (const threads of [1, 2]) {
    add(`parse/threads${threads}_mb_per_s`, bytes / 1e6 / median(wall[threads]!), 'MB/s', 'higher', rounds, {
      against: 'wall time of one thread',
      ratio: median(wall[1]!.map((seconds, i) => seconds / wall[threads]![i]!)),
      config: { ...config, records: copies.length, threads },
    });
  }
}
