import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { BubblewrapProvider } from '@treeward/sandbox';
import { harnessCache } from '../cache.js';
import { adapterByName } from '../registry.js';
import { startOptions } from './start-cache.js';

const full = process.env['TREEWARD_TEST_FULL'] === '1';
const provider = new BubblewrapProvider({ run: 'start-cache' });
const work = mkdtempSync(join(tmpdir(), 'tw-sc-'));
afterAll(async () => {
  await provider.close();
  rmSync(work, { recursive: true, force: true });
});

const HARNESSES = [
  { name: 'pi', until: '--print', long: false },
  { name: 'openclaw', until: 'agent', long: true },
];

for (const { name, until, long } of HARNESSES)
  it(`the start cache of ${name} is made once, taken by the next start, and nobody inside can write it`, async (context) => {
    const adapter = adapterByName(name);
    if (long && !full) return context.skip('skipped: two long starts; TREEWARD_TEST_FULL=1 runs it');
    if (!(await adapter.detect())) return context.skip(`skipped: ${name} not installed`);
    // The same installs, another place for what is made of them.
    const cacheRoot = mkdtempSync(join(work, 'cache-'));
    symlinkSync(harnessCache(), join(cacheRoot, 'harnesses'));
    const before = process.env['TREEWARD_CACHE'];
    process.env['TREEWARD_CACHE'] = cacheRoot;
    try {
      expect(startOptions((await adapter.detect())!).env).toEqual({ NODE_DISABLE_COMPILE_CACHE: '1' });
      await adapter.warm!(provider);
      const installed = (await adapter.detect())!;
      const cache = installed.mounts.find(({ inside }) => inside.endsWith('start-cache'))!;
      expect(existsSync(cache.host)).toBe(true);
      const sandbox = await provider.open({
        id: `uses-cache-of-${name}`,
        network: { kind: 'none' },
        mounts: installed.mounts,
        limits: adapter.limits,
      });
      const { argv, run } = adapter.command(
        sandbox.session(),
        installed,
        { prompt: 'x', maxTurns: 1 },
        { baseUrl: '', key: 'k', rolloutId: 'r' },
      );
      const help = await sandbox.run([...argv.slice(0, argv.indexOf(until) + 1), '--help'], {
        ...run,
        env: { ...run.env, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
        timeout: 60_000,
      });
      expect(help.code).toBe(0);
      expect(help.stderr.split('was accepted').length).toBeGreaterThan(10);
      expect(help.stderr).not.toContain('was rejected');
      const touched = await sandbox.run(['/bin/sh', '-c', `touch ${cache.inside}/x`]);
      expect(touched.stderr).toContain('Read-only file system');
      await sandbox.destroy();
    } finally {
      if (before === undefined) delete process.env['TREEWARD_CACHE'];
      else process.env['TREEWARD_CACHE'] = before;
    }
  });
