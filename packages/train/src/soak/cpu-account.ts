import { readdirSync, readFileSync } from 'node:fs';

/** Milliseconds of a clock tick in /proc (USER_HZ is 100 on every Linux port that Node runs on). */
const TICK_MS = 10;

export interface CpuUse {
  /** This process: planning, pool, record, witnesses. */
  controller: number;
  gateway: number;
  engine: number;
  /** All else that this process started: sandboxes with what ran in them, and what starts them. */
  children: number;
}

/** Milliseconds of CPU so far. `services`: pids by name; one that is gone counts 0. */
export function cpuUse(services: Readonly<Record<string, number | undefined>>): CpuUse {
  const [utime, stime, cutime, cstime] = statOf('self');
  const others = childrenOf(process.pid).filter((pid) => !Object.values(services).includes(pid));
  return {
    controller: utime + stime,
    children: cutime + cstime + others.flatMap((pid) => statOf(String(pid))).reduce((sum, ms) => sum + ms, 0),
    gateway: ownOf(services['gateway']),
    engine: ownOf(services['engine']),
  };
}

/** Running children; not every kernel lists them by parent. */
const childrenOf = (parent: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && fieldsOf(name)?.[1] === String(parent))
    .map(Number);

const ownOf = (pid: number | undefined): number => {
  if (pid === undefined) return 0;
  const [utime, stime] = statOf(String(pid));
  return utime + stime;
};

function statOf(pid: string): [number, number, number, number] {
  const fields = fieldsOf(pid);
  const at = (index: number): number => Number(fields?.[index] ?? 0) * TICK_MS;
  return [at(11), at(12), at(13), at(14)];
}

/** Of its `stat`, from the third (its state) on; null when there is no such process. */
function fieldsOf(pid: string): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' '); // its name may hold anything
  } catch {
    return null;
  }
}
