import { accessSync, constants, readFileSync } from 'node:fs';
import { findCgroups, type CgroupLayout } from './cgroups.js';

/** How sandboxes are made on this machine, before anybody tried. */
export interface Machine {
  bwrap: string;
  /** root: mounts as root, then drops to the sandbox uid. userns: mounts in a user namespace of the caller's. */
  mechanism: 'root' | 'userns';
  cgroups: CgroupLayout | null;
}

const BWRAP_PLACES = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap'];

/** What can be seen without starting anything. */
export function inspectMachine(options: { uid?: number; mountinfo?: string } = {}): {
  machine: Machine | null;
  reasons: string[];
} {
  const uid = options.uid ?? process.getuid?.();
  const no = (reason: string): { machine: null; reasons: string[] } => ({ machine: null, reasons: [reason] });
  if (process.platform !== 'linux') return no(`needs Linux, this is ${process.platform}`);
  if (process.arch !== 'x64') return no(`no seccomp table for ${process.arch}`);
  const bwrap = BWRAP_PLACES.find(isExecutable);
  if (!bwrap) return no('bwrap not found: install the package bubblewrap (0.8 or newer)');
  if (uid !== 0) {
    const most = readNumber('/proc/sys/user/max_user_namespaces');
    if (most === 0) return no('user namespaces are switched off (user.max_user_namespaces = 0)');
    if (readNumber('/proc/sys/kernel/unprivileged_userns_clone') === 0) {
      return no('user namespaces are for root only (kernel.unprivileged_userns_clone = 0)');
    }
    return {
      machine: { bwrap, mechanism: 'userns', cgroups: null },
      reasons: ['not root: no cgroup limits, memory and processes are bounded per process by rlimits'],
    };
  }
  const found = findCgroups(options.mountinfo);
  if ('reason' in found) {
    return {
      machine: { bwrap, mechanism: 'root', cgroups: null },
      reasons: [`root, but without cgroups: ${found.reason}; limits by rlimits only`],
    };
  }
  return {
    machine: { bwrap, mechanism: 'root', cgroups: found.layout },
    reasons: [`root, bwrap, overlay, seccomp, cgroup v${found.layout.version}`],
  };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function readNumber(path: string): number | null {
  try {
    return Number(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}
