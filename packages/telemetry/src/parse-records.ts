import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { toPlainError, TreewardError, WORKER_ARGUMENTS } from '@treeward/base';
import { Piscina } from 'piscina';
import type { ParseOutcome, ParseTask } from './parse-worker.js';

export interface ParseRecordsOptions {
  /** Stops at once, records in progress included; the promise rejects with its reason. */
  signal?: AbortSignal;
  /** @default one per core, at most one per record */
  threads?: number;
  /**
   * Given each outcome as it is there, in whatever order, with its place in `directories`. A promise it returns is
   * awaited before the next record of that thread is begun, so that no more than `threads` records are in memory.
   * Without it the outcomes are collected.
   */
  onRecord?: (outcome: ParseOutcome, index: number) => void | Promise<void>;
}

/** Compiled code in tests too: a thread knows nothing of vitest. */
const WORKER = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../dist/parse-worker.js' : './parse-worker.js', import.meta.url),
);

/**
 * Parses records on a pool of threads into flat arrays, which arrive without being copied. A record that cannot be read
 * is an outcome with an error; so is one whose thread died (RECORD_E_THREAD). The others are parsed all the same.
 * @returns outcomes in the order of `directories`; empty when `onRecord` took them
 * @throws the reason of `signal`; whatever `onRecord` throws; TreewardError RECORD_E_THREADS for a senseless `threads`
 */
export async function parseRecords(
  directories: readonly string[],
  { signal, threads, onRecord }: ParseRecordsOptions = {},
): Promise<ParseOutcome[]> {
  signal?.throwIfAborted();
  const wanted = threads ?? availableParallelism();
  if (!Number.isInteger(wanted) || wanted < 1) {
    throw new TreewardError('RECORD_E_THREADS', `threads must be a whole number from 1, not ${wanted}`);
  }
  const width = Math.min(wanted, directories.length);
  if (width === 0) return [];

  const stop = new AbortController();
  const within = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
  const collected: ParseOutcome[] = [];
  const deliver = onRecord ?? ((outcome, index) => void (collected[index] = outcome));
  const pool = new Piscina<ParseTask, ParseOutcome>({
    filename: WORKER,
    minThreads: width,
    maxThreads: width,
    execArgv: [...WORKER_ARGUMENTS],
  });
  pool.on('error', (cause: Error) => {
    const options = { cause, hints: ['build the package: threads run compiled code'] };
    stop.abort(new TreewardError('RECORD_E_THREAD', `a parser thread died: ${cause.message}`, options));
  });
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < directories.length) {
      within.throwIfAborted();
      const index = next++;
      await deliver(await parseOne(pool, directories[index]!, within), index);
    }
  };
  try {
    await Promise.all(Array.from({ length: width }, lane));
    within.throwIfAborted();
  } catch (error) {
    stop.abort(error); // the other lanes end with it
    throw error;
  } finally {
    await pool.destroy();
  }
  return collected;
}

async function parseOne(
  pool: Piscina<ParseTask, ParseOutcome>,
  directory: string,
  signal: AbortSignal,
): Promise<ParseOutcome> {
  try {
    return await pool.run({ directory }, { signal });
  } catch (error) {
    signal.throwIfAborted();
    const { message } = toPlainError(error);
    return {
      directory,
      ok: false,
      error: { code: 'RECORD_E_THREAD', message: `the thread that parsed ${directory} died: ${message}` },
    };
  }
}
