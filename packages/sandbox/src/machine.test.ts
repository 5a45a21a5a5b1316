import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createCgroup, findCgroups, listCgroups, oomKills } from './cgroups.js';
import { resolveLimits, scratchSizes, DEFAULT_LIMITS } from './limits.js';
import { inspectMachine } from './machine.js';
import { isAlive, processStart } from './processes.js';
import { scratch } from './testing/open.js';

const host = scratch();
afterAll(() => rmSync(host, { recursive: true, force: true }));
const line = (point: string, type: string, options: string): string =>
  `31 23 0:28 / ${point} rw,relatime - ${type} cgroup ${options}`;

describe('cgroup layout', () => {
  const make = (name: string, controllers?: string): string => {
    const path = join(host, name);
    mkdirSync(path, { recursive: true });
    if (controllers !== undefined) writeFileSync(join(path, 'cgroup.controllers'), controllers);
    return path;
  };

  it('prefers v1 where the three controllers are mounted, whatever a hybrid v2 mount holds', () => {
    const [memory, pids, cpu, unified] = [
      make('memory'),
      make('pids'),
      make('cpu'),
      make('unified', 'hugetlb\n'),
    ];
    const text = [
      line(memory, 'cgroup', 'rw,memory'),
      line(pids, 'cgroup', 'rw,pids'),
      line(cpu, 'cgroup', 'rw,cpu,cpuacct'),
      line(unified, 'cgroup2', 'rw'),
    ].join('\n');
    expect(findCgroups(text)).toEqual({ layout: { version: 1, roots: { memory, pids, cpu } } });
  });

  it('names what a v2 mount lacks, and what is not there at all', () => {
    expect(findCgroups(line(make('poor', 'hugetlb pids\n'), 'cgroup2', 'rw'))).toEqual({
      reason: expect.stringContaining('lacks memory, cpu') as string,
    });
    expect(findCgroups('')).toEqual({ reason: expect.stringContaining('no cgroup controllers') as string });
  });

  it('writes the v2 files (a fake root: no v2 host was at hand)', async () => {
    const root = make('v2', 'cpuset cpu io memory pids\n');
    const found = findCgroups(line(root, 'cgroup2', 'rw'));
    expect(found).toEqual({ layout: { version: 2, root } });
    if (!('layout' in found)) throw new Error('unreachable');
    const procs = await createCgroup(found.layout, 'o.s', { ...DEFAULT_LIMITS, cpus: 0.5 });
    const group = join(root, 'treeward/o.s');
    expect(procs).toEqual([join(group, 'cgroup.procs')]);
    const value = (name: string): string => readFileSync(join(group, name), 'utf8');
    expect(value('memory.max')).toBe(String(1024 ** 3));
    expect(value('memory.swap.max')).toBe('0');
    expect(value('pids.max')).toBe('512');
    expect(value('cpu.max')).toBe('50000 100000');
    writeFileSync(join(group, 'memory.events'), 'low 0\noom 3\noom_kill 2\n');
    expect(await oomKills(found.layout, 'o.s')).toBe(2);
    expect(listCgroups(found.layout)).toEqual(['o.s']);
  });
});

describe('machine', () => {
  it('tells why it offers less', () => {
    expect(inspectMachine({ uid: 0, mountinfo: '' })).toMatchObject({
      machine: { mechanism: 'root', cgroups: null },
      reasons: [expect.stringContaining('without cgroups')],
    });
    expect(inspectMachine({ uid: 1000 })).toMatchObject({ machine: { mechanism: 'userns', cgroups: null } });
  });

  it('knows a process by pid and start time', () => {
    const start = processStart(process.pid)!;
    expect(start).toMatch(/^\d+$/);
    expect(isAlive(process.pid, start)).toBe(true);
    expect(isAlive(process.pid, '1')).toBe(false);
    expect(processStart(2 ** 22 + 1)).toBeNull();
  });
});

describe('limits', () => {
  it('keep all scratch file systems together below the memory limit', () => {
    for (const [memory, disk] of [
      [1024, 256],
      [256, 16],
      [64, 50],
      [8192, 4096],
    ] as const) {
      const limits = resolveLimits({ memory: memory * 2 ** 20, disk: disk * 2 ** 20 });
      const { workspace, tmp, shm } = scratchSizes(limits);
      expect(workspace).toBe(limits.disk);
      expect(workspace + tmp + shm).toBeLessThan(limits.memory);
    }
  });

  it('are refused by name when they cannot work', () => {
    expect(() => resolveLimits({ pids: 1 })).toThrow(/limits\.pids/);
    expect(() => resolveLimits({ cpus: Number.NaN })).toThrow(/limits\.cpus/);
    expect(() => resolveLimits({ disk: 2 ** 30 })).toThrow(/limits\.disk/);
  });
});
