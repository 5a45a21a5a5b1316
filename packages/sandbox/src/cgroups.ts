import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxLimits } from './types.js';

export type CgroupLayout =
  | { version: 1; roots: Record<'memory' | 'pids' | 'cpu', string> }
  /** Built after the kernel's documentation; tried with a fake root only. */
  | { version: 2; root: string };

const PARENT = 'treeward';
const PERIOD_US = 100_000;

/**
 * Finds the three controllers by mount, v1 or v2; null (with a reason) when one is missing or not writable. A hybrid
 * host has a v2 mount without them, so the mount alone says nothing.
 */
export function findCgroups(mountinfo?: string): { layout: CgroupLayout } | { reason: string } {
  let text = mountinfo;
  try {
    text ??= readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    return { reason: 'no /proc/self/mountinfo' };
  }
  const roots = new Map<string, string>();
  let unified: string | null = null;
  for (const line of text.split('\n')) {
    const [before, after] = line.split(' - ');
    const mountPoint = before?.split(' ')[4];
    const [type, , options] = after?.split(' ') ?? [];
    if (!mountPoint) continue;
    if (type === 'cgroup') for (const name of options?.split(',') ?? []) roots.set(name, mountPoint);
    if (type === 'cgroup2') unified = mountPoint;
  }
  const writable = (path: string): boolean => {
    try {
      accessSync(path, constants.W_OK);
      return true;
    } catch {
      return false;
    }
  };
  const [memory, pids, cpu] = [roots.get('memory'), roots.get('pids'), roots.get('cpu')];
  if (memory && pids && cpu) {
    const closed = [memory, pids, cpu].find((path) => !writable(path));
    return closed
      ? { reason: `${closed} is not writable` }
      : { layout: { version: 1, roots: { memory, pids, cpu } } };
  }
  if (unified) {
    let controllers: string[] = [];
    try {
      controllers = readFileSync(join(unified, 'cgroup.controllers'), 'utf8').trim().split(/\s+/);
    } catch {
      // not a cgroup root after all
    }
    const missing = ['memory', 'pids', 'cpu'].filter((name) => !controllers.includes(name));
    if (missing.length) return { reason: `cgroup v2 at ${unified} lacks ${missing.join(', ')}` };
    return writable(unified)
      ? { layout: { version: 2, root: unified } }
      : { reason: `${unified} is not writable` };
  }
  return { reason: 'no cgroup controllers memory, pids and cpu' };
}

const directories = (layout: CgroupLayout, name: string): string[] =>
  layout.version === 1
    ? [layout.roots.memory, layout.roots.pids, layout.roots.cpu].map((root) => join(root, PARENT, name))
    : [join(layout.root, PARENT, name)];

/**
 * The parent group is one sibling among the machine's processes: with the usual weight all sandboxes together would get the
 * CPU of a single process, and starve on a busy machine. Times the usual weight.
 */
const GROUP_WEIGHT = 16;

/** Makes the groups and sets the limits. Returns the `cgroup.procs` files to join by. */
export async function createCgroup(
  layout: CgroupLayout,
  name: string,
  limits: SandboxLimits,
): Promise<string[]> {
  const made = directories(layout, name);
  const quota = String(Math.round(limits.cpus * PERIOD_US));
  if (layout.version === 2) await enableControllers(layout.root);
  await Promise.all(made.map((directory) => mkdir(directory, { recursive: true })));
  const [memory, pids, cpu] = [made[0] as string, made[1] ?? made[0]!, made[2] ?? made[0]!];
  if (layout.version === 1) {
    await writeFile(join(memory, 'memory.limit_in_bytes'), String(limits.memory));
    // Only there with swap accounting; must follow the plain limit, which may not exceed it.
    await writeFile(join(memory, 'memory.memsw.limit_in_bytes'), String(limits.memory)).catch(ignoreMissing);
    await writeFile(join(pids, 'pids.max'), String(limits.pids));
    await writeFile(join(cpu, 'cpu.cfs_quota_us'), quota);
    await writeFile(join(dirname(cpu), 'cpu.shares'), String(GROUP_WEIGHT * 1024));
  } else {
    await writeFile(join(memory, 'memory.max'), String(limits.memory));
    await writeFile(join(memory, 'memory.swap.max'), '0').catch(ignoreMissing);
    await writeFile(join(pids, 'pids.max'), String(limits.pids));
    await writeFile(join(cpu, 'cpu.max'), `${quota} ${PERIOD_US}`);
    await writeFile(join(dirname(cpu), 'cpu.weight'), String(GROUP_WEIGHT * 100));
  }
  return made.map((directory) => join(directory, 'cgroup.procs'));
}

async function enableControllers(root: string): Promise<void> {
  const parent = join(root, PARENT);
  await mkdir(parent, { recursive: true });
  for (const directory of [root, parent]) {
    await writeFile(join(directory, 'cgroup.subtree_control'), '+memory +pids +cpu');
  }
}

const ignoreMissing = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'ENOENT' && error.code !== 'EACCES') throw error;
};

/** How often the memory limit killed something in there. */
export async function oomKills(layout: CgroupLayout, name: string): Promise<number> {
  const [memory] = directories(layout, name);
  const file = layout.version === 1 ? 'memory.oom_control' : 'memory.events';
  const text = await readFile(join(memory as string, file), 'utf8').catch(() => '');
  return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
}

/** Lets what is inside run freely, so that it can be scheduled to die, and kills it. */
export async function killCgroup(layout: CgroupLayout, name: string): Promise<void> {
  const all = directories(layout, name);
  if (layout.version === 1) {
    await writeFile(join(all[2] as string, 'cpu.cfs_quota_us'), '-1').catch(() => undefined);
  }
  for (const directory of all) {
    const text = await readFile(join(directory, 'cgroup.procs'), 'utf8').catch(() => '');
    for (const pid of text.split('\n').map(Number).filter(Boolean)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // gone already
      }
    }
  }
}

/** Removes the groups; EBUSY while the last processes are reaped. False when one stays. */
export async function removeCgroup(layout: CgroupLayout, name: string): Promise<boolean> {
  const results = await Promise.all(directories(layout, name).map((directory) => removeDirectory(directory)));
  return results.every(Boolean);
}

async function removeDirectory(directory: string): Promise<boolean> {
  for (let attempt = 0; attempt < 100; attempt++) {
    try {
      await rmdir(directory);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return true;
      if (code !== 'EBUSY') return false;
    }
    await delay(attempt < 20 ? 2 : 20);
  }
  return false;
}

/** Names of all groups that providers made here, alive or not. */
export function listCgroups(layout: CgroupLayout): string[] {
  const entries = directories(layout, '.').flatMap((parent) =>
    existsSync(parent) ? readdirSync(parent, { withFileTypes: true }) : [],
  );
  return [...new Set(entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])))];
}
