import { readFileSync } from 'node:fs';

/**
 * Start time of a process in clock ticks since boot, or null when there is none (a zombie counts as none). With the
 * pid it names one process for ever, which the pid alone does not.
 */
export function processStart(pid: number): string | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return null;
  }
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // from field 3 on: the name may hold anything
  return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null);
}

export const isAlive = (pid: number, start: string): boolean => processStart(pid) === start;

/** SIGKILL by pid + start time, never by name. */
export function killProcess(pid: number, start: string): void {
  if (!isAlive(pid, start)) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // gone between the look and the kill
  }
}

/** Milliseconds on the clock that all processes share and that nobody can set: a jump of the date must end no sandbox. */
export const uptimeMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);
