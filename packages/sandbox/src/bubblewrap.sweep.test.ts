import { existsSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { BubblewrapProvider } from './bubblewrap.js';
import { DoomedOwner } from './testing/doomed-owner.js';
import { scratch, sh } from './testing/open.js';
import { processesWith, tracesOf } from './testing/host.js';

const scratchDirectory = scratch();
const root = join(scratchDirectory, 'root');
const provider = new BubblewrapProvider({ root, run: 'sweeper' });
afterAll(async () => {
  await provider.close();
  rmSync(scratchDirectory, { recursive: true, force: true });
});

describe('sweep', () => {
  it(
    'removes everything an owner killed with kill -9 left, and nothing of the living',
    { timeout: 120_000 },
    async () => {
      await provider.sweep(); // groups of owners elsewhere that are dead: not what is counted here
      const mine = await provider.open({ id: 'mine', network: { kind: 'none' } });
      const owner = new DoomedOwner(`new BubblewrapProvider({ root: '${root}', run: 'doomed' })`, 8);
      const { folder } = await owner.alive(root);
      // In the background of a command that is over: it may not have become a sleep yet.
      await vi.waitFor(() => expect(processesWith('sleep 54545', { exact: true }).length).toBe(8), 10_000);
      expect(await provider.sweep()).toEqual({ swept: 0, live: 9 });

      await owner.kill();
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
