import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

const MAX_STDERR = 64 * 1024;

/** A started process: its ends, its end, and why it ended (its last words on stderr). */
export interface Running {
  /** Absent when it could not be started. */
  pid: number | undefined;
  output: Readable;
  input: Writable;
  exited: Promise<void>;
  failure: Promise<never>;
  kill(): void;
}

export function watch(child: ChildProcess): Running {
  let stderr = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    if (stderr.length < MAX_STDERR) stderr += text;
  });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const failure = new Promise<never>((_, reject) => {
    child.once('error', reject);
    // 'close', not 'exit': by then its last words have been read.
    child.once('close', (code, killed) =>
      reject(new Error(`${stderr.trim() || 'no message'} (${killed ?? `exit ${code}`})`)),
    );
  });
  failure.catch(() => undefined);
  return {
    ...{ pid: child.pid, output: child.stdout!, input: child.stdin!, exited, failure },
    kill: () => void child.kill('SIGKILL'),
  };
}

/** The work's result, or the first of: the process ended, the signal was aborted. */
export async function orFailure<T>(
  work: Promise<T>,
  failure: Promise<never>,
  signal: AbortSignal,
): Promise<T> {
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
  });
  // The agent's end shows first as a closed pipe; bwrap's own words follow and say more.
  const said = work.catch((error: unknown) =>
    Promise.race([failure, delay(1000).then(() => Promise.reject(error))]),
  );
  try {
    return await Promise.race([said, failure, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

export async function settlesWithin(work: Promise<void>, ms: number): Promise<boolean> {
  const stop = new AbortController();
  const timer = delay(ms, false, { signal: stop.signal }).catch(() => false);
  const settled = await Promise.race([work.then(() => true), timer]);
  stop.abort();
  return settled;
}
