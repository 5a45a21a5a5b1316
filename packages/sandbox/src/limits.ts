import { TreewardError } from '@treeward/base';
import type { SandboxLimits } from './types.js';

const MIB = 1024 * 1024;

export const DEFAULT_LIMITS: SandboxLimits = { memory: 1024 * MIB, pids: 512, cpus: 1, disk: 256 * MIB };

/** @throws TreewardError SANDBOX_E_OPTIONS naming the limit */
export function resolveLimits(given: Partial<SandboxLimits> = {}): SandboxLimits {
  const limits = { ...DEFAULT_LIMITS, ...given };
  const bad = (field: string, why: string): TreewardError =>
    new TreewardError('SANDBOX_E_OPTIONS', `limits.${field} ${why}`, { data: { field } });
  for (const [field, least] of Object.entries({ memory: 64 * MIB, pids: 16, cpus: 0.05, disk: MIB })) {
    const value = limits[field as keyof SandboxLimits];
    if (!Number.isFinite(value) || value < least) throw bad(field, `is ${value}; least: ${least}`);
  }
  // The scratch disk is memory: were it as large as the limit, a full disk would be an out-of-memory kill.
  if (limits.disk * 1.25 > limits.memory) {
    throw bad('disk', `is ${limits.disk}; most: 80 % of limits.memory (${limits.memory})`);
  }
  return limits;
}

/** Bytes of the three scratch file systems; together below the memory limit, so that each gives ENOSPC first. */
export function scratchSizes({ memory, disk }: SandboxLimits): {
  workspace: number;
  tmp: number;
  shm: number;
} {
  const rest = memory - disk;
  return {
    workspace: disk,
    tmp: Math.floor(Math.min(disk, rest / 2)),
    shm: Math.floor(Math.min(64 * MIB, rest / 8)),
  };
}
