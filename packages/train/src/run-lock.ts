import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';

/** Start time of a process in clock ticks since boot: with the pid it names one process for good. Null if it is gone. */
export function processStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

/**
 * One controller per run folder. A lock whose owner was killed is taken over.
 * @throws TreewardError RUN_E_LOCKED
 */
export function lockRun(root: string): () => void {
  const file = join(root, 'run.lock');
  const mine = `${process.pid} ${processStart(process.pid)}`;
  for (;;) {
    try {
      writeFileSync(file, mine, { flag: 'wx' });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const [pid, start] = readFileSync(file, 'utf8').split(' ');
    if (pid && processStart(Number(pid)) === start) {
      throw new TreewardError('RUN_E_LOCKED', `process ${pid} is working on ${root}`, {
        hints: ['wait for it, or choose another --run-dir'],
      });
    }
    rmSync(file, { force: true });
  }
}
