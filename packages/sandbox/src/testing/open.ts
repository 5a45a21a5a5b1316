import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { RunResult, Sandbox, SandboxOptions, SandboxProvider } from '../types.js';

let counter = 0;

/** A host directory for one test, world-traversable so that an unprivileged sandbox uid may be shown parts of it. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'tw-sandbox-'));
  chmodSync(directory, 0o755);
  return directory;
}

export type OpenSandbox = (options?: Partial<SandboxOptions>) => Promise<Sandbox>;

/** Opens sandboxes with fresh ids and destroys all of them after the last test of the block. */
export function sandboxOpener(provider: () => SandboxProvider): OpenSandbox {
  const opened: Sandbox[] = [];
  afterAll(async () => {
    await Promise.all(opened.map((sandbox) => sandbox.destroy()));
  });
  return async (options = {}) => {
    const sandbox = await provider().open({ id: `t-${++counter}`, network: { kind: 'none' }, ...options });
    opened.push(sandbox);
    return sandbox;
  };
}

export const sh = (sandbox: Sandbox, script: string, options = {}): Promise<RunResult> =>
  sandbox.run(['/bin/sh', '-c', script], options);
