import { execFileSync } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { adapters } from '@treeward/harness-adapters';
import { getBackendInfo } from '@treeward/native';

/** Versions of everything a run stood on, stored as `env.json`. */
export async function environment(): Promise<Record<string, unknown>> {
  const harnesses: Record<string, string> = {};
  for (const adapter of adapters) {
    const installed = await adapter.detect();
    if (installed) harnesses[adapter.name] = installed.version;
  }
  return {
    time: new Date().toISOString(),
    node: process.version,
    cores: cpus().length,
    memoryBytes: totalmem(),
    harnesses,
    native: getBackendInfo(),
    commit: commit(),
  };
}

function commit(): string | null {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return null; // not a checkout
  }
}
