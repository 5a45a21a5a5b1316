import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../../../', import.meta.url));
export const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

export interface CliRun {
  child: ChildProcess;
  done: Promise<{ code: number | null; signal: string | null; stdout: string; stderr: string }>;
}

/** The built `treeward` command, as a user starts it: from the repository's root, sources never loaded. */
export function startCli(args: readonly string[], env: Readonly<Record<string, string>> = {}): CliRun {
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: root,
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const done = new Promise<Awaited<CliRun['done']>>((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return { child, done };
}

export const runCli = (args: readonly string[], env?: Readonly<Record<string, string>>): CliRun['done'] =>
  startCli(args, env).done;
