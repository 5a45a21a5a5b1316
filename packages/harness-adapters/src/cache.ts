import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where harness CLIs are installed: outside the checkout, so that every clone shares one download. */
export function harnessCache(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const root = env['TREEWARD_CACHE'] || join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'treeward');
  return join(root, 'harnesses');
}

/** `node_modules` of one pinned install: each harness has its own, never the workspace's. */
export function modulesOf(name: string, version: string): string {
  return join(harnessCache(), `${name}@${version}`, 'node_modules');
}

/** What is really there, from the package's own manifest; null when it is absent or not readable as one. */
export function packageVersion(directory: string, manifest = 'package.json'): string | null {
  const file = join(directory, manifest);
  if (!existsSync(file)) return null;
  try {
    const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version?: unknown };
    return typeof version === 'string' ? version : null;
  } catch {
    return null; // an interrupted install: the same as none, so that the installer runs again
  }
}
