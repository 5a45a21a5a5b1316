import { toPlainError, type PlainError } from '@treeward/base';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { buffersOf, type FlatRecord } from './flat-record.js';
import { flattenRecord } from './flatten-record.js';

export interface ParseTask {
  /** Folder of one rollout. */
  directory: string;
}

/** Errors as plain objects: a class does not survive the way between threads, and one bad record is no exception. */
export type ParseOutcome =
  { directory: string; ok: true; record: FlatRecord } | { directory: string; ok: false; error: PlainError };

/** The task of a Piscina thread: the record's arrays change owner instead of being copied. */
export default function parseInWorker({ directory }: ParseTask): unknown {
  let outcome: ParseOutcome;
  try {
    outcome = { directory, ok: true, record: flattenRecord(directory) };
  } catch (error) {
    return { directory, ok: false, error: toPlainError(error) } satisfies ParseOutcome;
  }
  const movable = { [transferableSymbol]: buffersOf(outcome.record), [valueSymbol]: outcome };
  return move(movable as unknown as Parameters<typeof move>[0]);
}
