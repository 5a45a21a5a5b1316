import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { spawn } from 'node:child_process';
import { TreewardError } from '@treeward/base';
import type { RunResult, SandboxSession } from '@treeward/sandbox';

export interface HostSession extends SandboxSession {
  /** Files written so far: a harness that needs none runs with its user's own HOME. */
  readonly written: readonly string[];
}

/**
 * What an adapter sees when its harness runs on the user's own machine: a private HOME that it may fill, the user's
 * folder as the workspace, which it may not touch. @throws (write) TreewardError CLI_E_HOST_WRITE outside the private HOME
 */
export function hostSession(id: string, home: string, workspace: string): HostSession {
  const written: string[] = [];
  const place = (path: string): string => (isAbsolute(path) ? path : join(workspace, path));
  return {
    id,
    home,
    workspace,
    written,
    async write(path, data, options = {}) {
      const target = place(path);
      const inside = relative(home, target);
      if (inside.startsWith('..') || isAbsolute(inside)) {
        throw new TreewardError(
          'CLI_E_HOST_WRITE',
          `a recorded harness may not be set up outside ${home}: ${target}`,
        );
      }
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await writeFile(target, data, { mode: options.mode ?? 0o600 });
      written.push(target);
    },
    read: (path) => readFile(place(path)),
    run: (argv, options = {}) => runHere(argv, options.cwd ?? workspace, options.env ?? {}, options.stdin),
  };
}

/** Adapters only look for transcript files with it. */
function runHere(
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  stdin = '',
): Promise<RunResult> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(argv[0]!, argv.slice(1), { cwd, env: { ...process.env, ...env } });
    const text = { stdout: '', stderr: '' };
    child.stdout.on('data', (piece: Buffer) => (text.stdout += piece.toString()));
    child.stderr.on('data', (piece: Buffer) => (text.stderr += piece.toString()));
    child.once('error', reject);
    child.once('close', (code, signal) =>
      resolve({
        ...text,
        code,
        signal,
        timedOut: false,
        truncated: false,
        cpuSeconds: 0,
        wallMs: performance.now() - started,
      }),
    );
    child.stdin.end(stdin);
  });
}
