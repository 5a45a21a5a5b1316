import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { readJson, writeJsonAtomic } from '@treeward/base';
import type { Mount, SandboxProvider } from '@treeward/sandbox';
import { harnessCache } from '../cache.js';
import { call, inOrder, say } from '../scripted/script.js';
import { scriptedServer } from '../scripted/server.js';
import type { HarnessAdapter, Installed } from '../types.js';

/** Where sandboxes see it, read-only. */
const INSIDE = '/opt/harness/openclaw-start';
/** Below the folder: V8's code, and which file each import means. */
const CODE = 'code';
const MAP = 'resolutions.json';
/** In the sandbox that makes it, below the workspace. */
const MADE_IN = 'start-cache';
const TIMEOUT = 120_000;

/**
 * The start cache of one install on one Node: V8 takes code only from its own version, and the map holds only for these
 * files. Another install, another folder.
 */
export function startCacheOf(name: string, version: string, node: string, modules: string): Mount {
  const lock = join(modules, '.package-lock.json');
  const digest = createHash('sha256')
    .update(existsSync(lock) ? readFileSync(lock) : '')
    .digest('hex')
    .slice(0, 12);
  return {
    host: join(dirname(harnessCache()), 'start-caches', `${name}@${version}-node@${node}-${digest}`),
    inside: INSIDE,
  };
}

/** How a CLI is started that finds the cache there, or one that must not make one of its own. */
export function startOptions(
  installed: Installed,
  hook: string,
): { node: string[]; env: Record<string, string> } {
  return installed.mounts.some(({ inside }) => inside === INSIDE)
    ? { node: [`--import=file://${hook}?map=${INSIDE}/${MAP}`], env: usingCode(`${INSIDE}/${CODE}`) }
    : { node: [], env: { NODE_DISABLE_COMPILE_CACHE: '1' } };
}

/** With the second variable OpenClaw takes the folder as it is, instead of starting again with one of its own naming. */
const usingCode = (directory: string): Record<string, string> => ({
  NODE_COMPILE_CACHE: directory,
  OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED: '1',
});

/**
 * Makes the start cache: the CLI once, in a sandbox without a task, on a model that plays two replies. Nothing but the
 * CLI itself ever writes there; rollouts see the folder read-only. A folder that is there is left alone.
 * @param hook `resolutions.mjs` inside the sandbox
 * @throws what the sandbox throws, or the file system where the CLI left no cache
 */
export async function makeStartCache(
  adapter: HarnessAdapter,
  installed: Installed,
  provider: SandboxProvider,
  { host }: Mount,
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
        env: { ...env, ...usingCode(`${made}/${CODE}`) },
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
