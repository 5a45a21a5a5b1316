import { readFileSync } from 'node:fs';

/**
 * A name for a running process that a later process with the same pid does not share: pid plus, on Linux,
 * the start time in clock ticks since boot. Undefined when the process is gone.
 */
export function processIdentity(pid) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code !== 'EPERM') return undefined;
  }
  try {
    // The command name may hold spaces and brackets: fields are counted after its closing bracket.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z') return undefined;
    return `${pid}:${fields[19]}`;
  } catch {
    return process.platform === 'linux' ? undefined : String(pid);
  }
}
