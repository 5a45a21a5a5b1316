import { readFileSync } from 'node:fs';

/** Milliseconds of a clock tick in /proc (USER_HZ is 100 on every Linux port that Node runs on). */
const TICK_MS = 10;

export interface CpuUse {
  /** This process: planning, pool, record, witnesses. */
  controller: number;
  gateway: number;
  engine: number;
  /** All that this process started and waited for: sandboxes with what ran in them. */
  children: number;
}

/** Milliseconds of CPU so far. `services`: pids by name; one that is gone counts 0. */
export function cpuUse(services: Readonly<Record<string, number | undefined>>): CpuUse {
  const [utime, stime, cutime, cstime] = statOf('self');
  return {
    controller: utime + stime,
    children: cutime + cstime,
    gateway: ownOf(services['gateway']),
    engine: ownOf(services['engine']),
  };
}

const ownOf = (pid: number | undefined): number => {
  if (pid === undefined) return 0;
  const [utime, stime] = statOf(String(pid));
  return utime + stime;
};

function statOf(pid: string): [number, number, number, number] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const at = (index: number): number => Number(fields[index]) * TICK_MS;
    return [at(11), at(12), at(13), at(14)];
  } catch {
    return [0, 0, 0, 0];
  }
}
