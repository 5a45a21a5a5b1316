import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { BubblewrapProvider } from '@treeward/sandbox';
import { harnessCache } from '../cache.js';
import { openclaw } from './adapter.js';
import { startOptions } from './start-cache.js';

const full = process.env['TREEWARD_TEST_FULL'] === '1';
const provider = new BubblewrapProvider({ run: 'start-cache' });
const work = mkdtempSync(join(tmpdir(), 'tw-sc-'));
afterAll(async () => {
  await provider.close();
  rmSync(work, { recursive: true, force: true });
});

it('OpenClaw’s start cache is made once, taken by the next start, and nobody inside can write it', async (context) => {
  if (!full) return context.skip('skipped: two starts of OpenClaw; TREEWARD_TEST_FULL=1 runs it');
  if (!(await openclaw.detect())) return context.skip('skipped: openclaw not installed');
  // The same installs, another place for what is made of them.
  symlinkSync(harnessCache(), join(work, 'harnesses'));
  const before = process.env['TREEWARD_CACHE'];
  process.env['TREEWARD_CACHE'] = work;
  try {
    expect(startOptions((await openclaw.detect())!, '/x').env).toEqual({ NODE_DISABLE_COMPILE_CACHE: '1' });
    await openclaw.warm!(provider);
    const installed = (await openclaw.detect())!;
    const cache = installed.mounts.find(({ inside }) => inside.endsWith('openclaw-start'))!;
    expect(existsSync(cache.host)).toBe(true);
    const sandbox = await provider.open({
      id: 'uses-cache',
      network: { kind: 'none' },
      mounts: installed.mounts,
      limits: openclaw.limits,
    });
    const { argv, run } = openclaw.command(
      sandbox.session(),
      installed,
      { prompt: 'x', maxTurns: 1 },
      { baseUrl: '', key: 'k', rolloutId: 'r' },
    );
    const help = await sandbox.run([...argv.slice(0, argv.indexOf('agent') + 1), '--help'], {
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
