import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Mount, SandboxProvider } from '@treeward/sandbox';
import { harnessCache, modulesOf } from '../cache.js';
import { NODE_PIN } from '../own-node.js';
import type { HarnessAdapter, Installed } from '../types.js';
import { CODE, MAP, makeStartCache } from './make.js';

/** Where sandboxes see it, read-only. */
const INSIDE = '/opt/harness/start-cache';
/** Says which file an import means, with the map; makes the map where the cache is made. */
const HOOK: Mount = {
  host: fileURLToPath(new URL('../../src/start-cache/resolutions.mjs', import.meta.url)),
  inside: '/opt/harness/resolutions.mjs',
};

/**
 * What a harness that is a Node program would do again at every start, done once per install: its modules compiled, and
 * which file each of its imports means. OpenClaw's and pi's starts take about half as long with it.
 */
export interface StartCache {
  /** For `detect`: the hook, and the cache where it has been made. */
  mounts(version: string): Mount[];
  /** For `warm`: makes it once per process, unless it is there; says why it could not and goes on without. */
  warm(adapter: HarnessAdapter, provider: SandboxProvider): Promise<void>;
}

/**
 * @param name the harness, as its cache folder is called
 * @param pin its install below the harness cache
 * @param installName of that install, where several harnesses share one
 */
export function startCache(name: string, pin: string, installName = name): StartCache {
  const cacheOf = (version: string): Mount => ({
    host: join(startCaches(), `${name}@${version}-node@${NODE_PIN}-${digestOf(modulesOf(installName, pin))}`),
    inside: INSIDE,
  });
  let warmed: Promise<void> | null = null;
  return {
    mounts(version) {
      const cache = cacheOf(version);
      return [HOOK, ...(existsSync(cache.host) ? [cache] : [])];
    },
    warm(adapter, provider) {
      warmed ??= (async () => {
        const installed = await adapter.detect();
        if (!installed) return;
        const { host } = cacheOf(installed.version);
        // Whatever keeps it from being made (a read-only cache, no sandbox) costs a second or two per rollout, nothing else.
        await makeStartCache(adapter, installed, provider, host, HOOK.inside).catch((error: unknown) => {
          process.stderr.write(`${name} starts without its cache: ${(error as Error).message}\n`);
        });
      })();
      return warmed;
    },
  };
}

/** How a CLI is started that finds the cache there, or one that must not make one of its own. */
export function startOptions(installed: Installed): { node: string[]; env: Record<string, string> } {
  return installed.mounts.some(({ inside }) => inside === INSIDE)
    ? {
        node: [`--import=file://${HOOK.inside}?map=${INSIDE}/${MAP}`],
        env: { NODE_COMPILE_CACHE: `${INSIDE}/${CODE}` },
      }
    : { node: [], env: { NODE_DISABLE_COMPILE_CACHE: '1' } };
}

const startCaches = (): string => join(dirname(harnessCache()), 'start-caches');

/** V8 takes code only from its own version, and the map holds only for these files: another install, another folder. */
function digestOf(modules: string): string {
  const lock = join(modules, '.package-lock.json');
  return createHash('sha256')
    .update(existsSync(lock) ? readFileSync(lock) : '')
    .digest('hex')
    .slice(0, 12);
}
