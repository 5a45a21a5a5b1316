import { mkdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { BubblewrapProvider } from './bubblewrap.js';
import { encodeFrame, FrameType } from './frames.js';
import { DoomedOwner } from './testing/doomed-owner.js';
import { processesWith } from './testing/host.js';
import { scratch, sh } from './testing/open.js';

const scratchDirectory = scratch();
// Longer than the address of a socket may be.
const root = join(scratchDirectory, 'r'.repeat(120));
const provider = new BubblewrapProvider({ root, run: 'spawner' });
const network = { kind: 'none' } as const;
afterAll(async () => {
  await provider.close();
  rmSync(scratchDirectory, { recursive: true, force: true });
});

/** Pids of the spawners whose provider's folder lies below the root; `root` names no other process. */
const spawners = (): number[] =>
  processesWith(`${root}/`).filter((pid) => processesWith('agent spawner --socket').includes(pid));

describe('the spawner', () => {
  it('is one for all sandboxes of a provider, and says in whose words a start failed', async () => {
    const opened = await Promise.all(
      Array.from({ length: 12 }, (_, index) => provider.open({ id: `many-${index}`, network })),
    );
    const said = await Promise.all(opened.map((sandbox) => sh(sandbox, 'echo $PPID')));
    expect(said.every(({ code }) => code === 0)).toBe(true);
    expect(spawners()).toHaveLength(1);
    await Promise.all(opened.map((sandbox) => sandbox.destroy()));
    const mounts = [
      { host: '/etc/hostname', inside: '/opt/file' },
      { host: '/usr/share', inside: '/opt/file/below' },
    ];
    await expect(provider.open({ id: 'fails', network, mounts })).rejects.toMatchObject({
      code: 'SANDBOX_E_CREATE',
      message: expect.stringMatching(/bwrap: .*\/opt\/file.*exit 1/) as string,
    });
    expect(provider.counters().leaked).toBe(0);
  });

  it('takes what it started along when it is killed; the next sandbox has another', async () => {
    const sandbox = await provider.open({ id: 'orphan', network });
    const running = expect(sandbox.run(['sleep', '61616'])).rejects.toMatchObject({ code: 'SANDBOX_E_LOST' });
    const [first] = spawners();
    process.kill(first!, 'SIGKILL');
    await running;
    await vi.waitFor(() => expect(processesWith('sleep 61616', { exact: true })).toEqual([]));
    await sandbox.destroy();
    const next = await provider.open({ id: 'next', network });
    expect((await sh(next, 'echo here')).stdout).toBe('here\n');
    expect(spawners()).not.toContain(first);
    await next.destroy();
    expect(provider.counters().leaked).toBe(0);
  });

  it('starts nothing for a request that is none, and goes on', async () => {
    const sandbox = await provider.open({ id: 'before-rubbish', network });
    const [pid] = spawners();
    const hostile = [
      encodeFrame(FrameType.exec, 7, Buffer.from('x\0')),
      encodeFrame(FrameType.spawn, 7, Buffer.from('no zero at the end')),
      encodeFrame(FrameType.spawn, 7),
      Buffer.alloc(12, 0xff),
    ];
    for (const bytes of hostile) {
      const connection = connect(`/proc/${pid}/cwd/spawner.sock`);
      connection.on('error', () => undefined).resume();
      const closed = new Promise((resolve) => connection.once('close', resolve));
      connection.write(bytes);
      await closed;
    }
    await sandbox.destroy();
    const after = await provider.open({ id: 'after-rubbish', network });
    await after.destroy();
    expect(spawners()).toEqual([pid]);
  });

  it('does not answer: the start ends by its time limit, and nothing comes of it later', async () => {
    const brief = new BubblewrapProvider({ root, run: 'stopped', createTimeout: 500 });
    const others = spawners();
    await (await brief.open({ id: 'first', network })).destroy();
    const [pid] = spawners().filter((candidate) => !others.includes(candidate));
    process.kill(pid!, 'SIGSTOP');
    await expect(brief.open({ id: 'waits', network })).rejects.toMatchObject({ code: 'SANDBOX_E_CREATE' });
    process.kill(pid!, 'SIGCONT');
    const after = await brief.open({ id: 'after', network });
    expect((await sh(after, 'echo here')).stdout).toBe('here\n');
    await vi.waitFor(() => expect(processesWith('/sb/waits')).toEqual([]), 5000);
    await brief.close();
    expect(brief.counters()).toMatchObject({ create_failed: 1, leaked: 0 });
  });

  it('ends with its provider, and with its owner’s kill -9', { timeout: 60_000 }, async () => {
    await provider.close();
    expect(spawners()).toEqual([]);
    mkdirSync(root, { recursive: true });
    const owner = new DoomedOwner(`new BubblewrapProvider({ root: '${root}' })`, 2);
    await owner.alive(root);
    expect(spawners()).toHaveLength(1);
    await owner.kill();
    await vi.waitFor(() => expect(processesWith(`${root}/`)).toEqual([]), 5000);
    await provider.sweep();
  });
});
