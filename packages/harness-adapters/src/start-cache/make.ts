import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readJson, writeJsonAtomic } from '@treeward/base';
import type { SandboxProvider } from '@treeward/sandbox';
import { call, inOrder, say } from '../scripted/script.js';
import { scriptedServer } from '../scripted/server.js';
import type { HarnessAdapter, Installed } from '../types.js';

/** Below its folder: V8's code, and which file each import means. */
export const CODE = 'code';
export const MAP = 'resolutions.json';
/** In the sandbox that makes it, below the workspace. */
const MADE_IN = 'start-cache';
const TIMEOUT = 120_000;

/**
 * Makes the start cache: the CLI once, in a sandbox without a task, on a model that plays two replies. Nothing but the
 * CLI itself ever writes there; rollouts see the folder read-only. A folder that is there is left alone.
 * @param host the folder that it becomes
 * @param hook `resolutions.mjs` inside the sandbox
 * @throws what the sandbox throws, or the file system where the CLI left no cache
 */
export async function makeStartCache(
  adapter: HarnessAdapter,
  installed: Installed,
  provider: SandboxProvider,
  host: string,
  hook: string,
): Promise<void> {
  if (existsSync(host)) return;
  mkdirSync(dirname(host), { recursive: true });
  const copy = mkdtempSync(`${host}.`);
  const script = inOrder([[call(adapter.tools.exec.tool, { command: 'true' })], say('Done.')]);
  const server = await scriptedServer(adapter, script);
  try {
    const sandbox = await provider.open({
      id: `start-cache-${process.pid}-${Date.now()}`,
      network: { kind: 'model-socket', directory: server.directory },
      mounts: installed.mounts,
      limits: adapter.limits,
    });
    try {
      const session = sandbox.session();
      const endpoint = { baseUrl: sandbox.modelUrl ?? '', key: 'none', rolloutId: 'start-cache' };
      const task = { prompt: 'Do nothing.', maxTurns: 2 };
      await adapter.prepare(session, endpoint, task);
      const { argv, run } = adapter.command(session, installed, task, endpoint);
      const { NODE_DISABLE_COMPILE_CACHE: _, ...env } = run.env ?? {};
      const made = `${session.workspace}/${MADE_IN}`;
      await session.write(`${made}/maps/0.json`, '{}');
      await sandbox.run([argv[0]!, `--import=file://${hook}?record=${made}/maps`, ...argv.slice(1)], {
        ...run,
        env: { ...env, NODE_COMPILE_CACHE: `${made}/${CODE}` },
        timeout: TIMEOUT,
      });
      await sandbox.exportWorkspace(join(copy, 'workspace'));
      if (!existsSync(host)) renameSync(finished(join(copy, 'workspace', MADE_IN)), host);
    } finally {
      await sandbox.destroy();
    }
  } finally {
    await server.close();
    rmSync(copy, { recursive: true, force: true });
  }
}

type Resolutions = Record<string, Record<string, [url: string, format: string]>>;

/** The maps of the CLI's processes become one; all is readable: Node makes its cache for its own user only. */
function finished(directory: string): string {
  const maps = join(directory, 'maps');
  const all: Resolutions = {};
  for (const name of readdirSync(maps))
    for (const [parent, known] of Object.entries(readJson<Resolutions>(join(maps, name))))
      all[parent] = { ...all[parent], ...known };
  rmSync(maps, { recursive: true });
  writeJsonAtomic(join(directory, MAP), all);
  chmodSync(directory, 0o755);
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true }))
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  return directory;
}
