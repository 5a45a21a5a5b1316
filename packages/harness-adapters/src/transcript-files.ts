import type { SandboxSession } from '@treeward/sandbox';

/**
 * The files below `directory` (inside) whose names match one of `patterns` (shell style), by path relative to it.
 * A missing directory gives none: a harness that died early has written nothing.
 */
export async function transcriptFiles(
  sandbox: SandboxSession,
  directory: string,
  patterns: readonly string[],
): Promise<Map<string, Uint8Array>> {
  const names = patterns.flatMap((pattern, index) => [...(index > 0 ? ['-o'] : []), '-name', pattern]);
  const { stdout } = await sandbox.run([
    '/usr/bin/find',
    directory,
    '-type',
    'f',
    '(',
    ...names,
    ')',
    '-printf',
    '%P\\0',
  ]);
  const files = new Map<string, Uint8Array>();
  for (const path of stdout.split('\0').filter(Boolean).sort()) {
    files.set(path, await sandbox.read(`${directory}/${path}`));
  }
  return files;
}
