import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { killCgroup, listCgroups, removeCgroup, type CgroupLayout } from './cgroups.js';
import { unmount } from './mounts.js';
import { OWNER_NAME, type OwnerLease, type SandboxLease } from './owner.js';
import { isAlive, killProcess, uptimeMs } from './processes.js';
import { mountsBelow, removeTree } from './remove-tree.js';

/** An owner folder without a lease younger than this is one that is being made. */
const BIRTH_MS = 60_000;

/**
 * Removes what dead owners left: processes (by pid + start time, and whatever is in their cgroups), cgroups, folders.
 * Ends sandboxes of living owners only when their time to live has passed. Safe to run twice and beside live runs.
 */
export async function sweepRoot(
  root: string,
  cgroups: CgroupLayout | null,
): Promise<{ swept: number; live: number }> {
  let swept = 0;
  let live = 0;
  for (const name of existsSync(root) ? readdirSync(root) : []) {
    const path = join(root, name);
    if (!OWNER_NAME.test(name)) continue;
    const leases = sandboxLeases(path);
    if (ownerLives(path)) {
      for (const lease of leases) {
        if (lease.expires > uptimeMs() || lease.pid === null || lease.start === null) live++;
        else {
          killProcess(lease.pid, lease.start); // its owner sees it end and tidies up
          swept++;
        }
      }
      continue;
    }
    for (const { pid, start } of leases) if (pid !== null && start !== null) killProcess(pid, start);
    await removeCgroups(cgroups, (group) => group.startsWith(`${name}.`));
    await unmount(mountsBelow(path).reverse()); // a container's workspace is mounted where the host sees it
    await removeTree(path);
    swept += leases.length;
  }
  // Groups whose folder is gone, or lay under another root: the name alone tells whether the owner lives.
  swept += await removeCgroups(cgroups, (group) => {
    const match = OWNER_NAME.exec(group.slice(0, group.indexOf('.')));
    return match !== null && !isAlive(Number(match[1]), match[2] as string);
  });
  return { swept, live };
}

async function removeCgroups(
  cgroups: CgroupLayout | null,
  wanted: (name: string) => boolean,
): Promise<number> {
  if (!cgroups) return 0;
  const doomed = listCgroups(cgroups).filter(wanted);
  await Promise.all(
    doomed.map(async (name) => {
      await killCgroup(cgroups, name);
      await removeCgroup(cgroups, name);
    }),
  );
  return doomed.length;
}

function ownerLives(path: string): boolean {
  try {
    const lease = JSON.parse(readFileSync(join(path, 'owner.json'), 'utf8')) as OwnerLease;
    return isAlive(lease.pid, lease.start);
  } catch {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat !== undefined && Date.now() - stat.ctimeMs < BIRTH_MS;
  }
}

function sandboxLeases(path: string): SandboxLease[] {
  let names: string[];
  try {
    names = readdirSync(join(path, 'sb'));
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    if (!name.endsWith('.json')) return [];
    try {
      return [JSON.parse(readFileSync(join(path, 'sb', name), 'utf8')) as SandboxLease];
    } catch {
      return []; // removed or being written
    }
  });
}
