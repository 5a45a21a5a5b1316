import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { BubblewrapProvider } from './bubblewrap.js';
import { scratch, sh } from './testing/open.js';
import { processesWith, tracesOf } from './testing/host.js';

const scratchDirectory = scratch();
const root = join(scratchDirectory, 'root');
const provider = new BubblewrapProvider({ root, run: 'sweeper' });
afterAll(async () => {
  await provider.close();
  rmSync(scratchDirectory, { recursive: true, force: true });
});

/** Runs as its own process, from the built package: an owner that can be killed. */
const OWNER = `
const { BubblewrapProvider } = await import(process.argv[1]);
const provider = new BubblewrapProvider({ root: process.argv[2], run: 'doomed' });
const all = await Promise.all(Array.from({ length: 8 }, (_, i) => provider.open({ id: 's' + i, network: { kind: 'none' }, mounts: [{ host: '/usr/share', inside: '/opt/share' }] })));
await Promise.all(all.map((s) => s.run(['/bin/sh', '-c', '(setsid sleep 54545 >/dev/null 2>&1 &) ; echo x > f'])));
console.log('alive');
process.stdin.on('end', () => process.exit()).resume(); // never outlives a failed test
`;

describe('sweep', () => {
  it(
    'removes everything an owner killed with kill -9 left, and nothing of the living',
    { timeout: 120_000 },
    async () => {
      const built = fileURLToPath(new URL('../dist/index.js', import.meta.url));
      expect(existsSync(built), `${built}: build the package first`).toBe(true);
      const mine = await provider.open({ id: 'mine', network: { kind: 'none' } });
      const owner = spawn(process.execPath, ['--input-type=module', '-e', OWNER, built, root], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      await once(owner.stdout, 'data');
      const folder = readdirSync(root).find((name) => name.startsWith(`${owner.pid}-`))!;
      expect(processesWith('sleep 54545', { exact: true }).length).toBe(8);
      expect(await provider.sweep()).toEqual({ swept: 0, live: 9 });

      owner.kill('SIGKILL');
      await once(owner, 'exit');
      expect((await tracesOf(root, [folder])).length).toBeGreaterThan(1);
      expect(await provider.sweep()).toEqual({ swept: 8, live: 1 });

      expect((await tracesOf(root, [folder])).filter((trace) => trace.includes(folder))).toEqual([]);
      expect(processesWith('sleep 54545', { exact: true })).toEqual([]);
      expect(processesWith(folder)).toEqual([]);
      expect(await provider.sweep()).toEqual({ swept: 0, live: 1 });
      expect((await sh(mine, 'echo still here')).stdout).toBe('still here\n');
      await mine.destroy();
    },
  );

  it('ends a sandbox of a living owner when its time is over', async () => {
    const brief = new BubblewrapProvider({ root, ttl: 1 });
    const sandbox = await brief.open({ id: 'brief', network: { kind: 'none' } });
    const running = sandbox.run(['sleep', '100']);
    const lost = expect(running).rejects.toMatchObject({ code: 'SANDBOX_E_LOST' });
    await brief.sweep();
    await lost;
    await brief.close();
    expect(brief.counters().leaked).toBe(0);
  });

  it('spares folders that are being made, and removes those that never got a lease', async () => {
    const young = join(root, '999999-1-0000abcd');
    const foreign = join(root, 'not-ours');
    mkdirSync(young);
    mkdirSync(foreign);
    writeFileSync(join(foreign, 'keep'), 'x');
    await provider.sweep();
    expect(existsSync(young)).toBe(true);
    utimesSync(young, 0, 0);
    writeFileSync(
      join(young, 'owner.json'),
      JSON.stringify({ pid: 999999, start: '1', run: '', created: '' }),
    );
    await provider.sweep();
    expect(existsSync(young)).toBe(false);
    expect(existsSync(join(foreign, 'keep'))).toBe(true);
  });
});
