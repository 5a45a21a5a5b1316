import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { BubblewrapProvider } from './bubblewrap.js';
import { sandboxOpener, scratch, sh } from './testing/open.js';
import { processesWith, tracesOf } from './testing/host.js';

const MIB = 1024 * 1024;
const root = scratch();
const provider = new BubblewrapProvider({ root: join(root, 'root'), run: 'limits' });
const open = sandboxOpener(() => provider);
const EAT = 'x = []\nwhile True: x.append(bytearray(8 * 1024 * 1024))';

afterAll(async () => {
  await provider.close();
  rmSync(root, { recursive: true, force: true });
});

describe('limits', () => {
  it('ends a memory bomb, says so where the tier can tell, and stays usable', async () => {
    const { tier } = await provider.probe();
    const sandbox = await open({ limits: { memory: 128 * MIB, disk: 16 * MIB } });
    expect(await sandbox.outOfMemory()).toBe(false);
    const bomb = await sandbox.run(['/usr/bin/python3', '-c', EAT], { timeout: 30_000 });
    expect(bomb.timedOut).toBe(false);
    if (tier === 'full') {
      expect(bomb).toMatchObject({ code: null, signal: 'SIGKILL' });
      expect(await sandbox.outOfMemory()).toBe(true);
    } else {
      expect(bomb.code).toBe(1);
      expect(bomb.stderr).toContain('MemoryError');
    }
    expect((await sh(sandbox, 'echo alive')).stdout).toBe('alive\n');
    await sandbox.destroy();
    expect(await sandbox.outOfMemory()).toBe(tier === 'full');
    expect(provider.counters().oom).toBe(tier === 'full' ? 1 : 0);
  });

  it('keeps the changes readable after everything inside has died of memory', async () => {
    const sandbox = await open({ limits: { memory: 128 * MIB, disk: 16 * MIB } });
    await sandbox.write('made', 'before the end');
    await sandbox.run(['/usr/bin/python3', '-c', EAT], { timeout: 30_000 });
    expect((await sandbox.changes()).map((change) => change.path)).toEqual(['made']);
  });

  it('destroys a sandbox full of spinning processes, with nothing left', async () => {
    const sandbox = await open({ limits: { pids: 128 } });
    await sh(
      sandbox,
      'for i in $(seq 80); do sh -c "while :; do :; done # spin-31337" >/dev/null 2>&1 & done',
    );
    expect(processesWith('spin-31337').length).toBeGreaterThan(60);
    await sandbox.destroy();
    expect(processesWith('spin-31337')).toEqual([]);
    expect((await tracesOf(join(root, 'root'), [])).length).toBe(1); // the provider's own folder
    expect(provider.counters().leaked).toBe(0);
  });

  it('starts few at once, holds many', async () => {
    const narrow = new BubblewrapProvider({ root: join(root, 'root'), maxStarts: 2 });
    const all = await Promise.all(
      Array.from({ length: 24 }, (_, i) => narrow.open({ id: `many-${i}`, network: { kind: 'none' } })),
    );
    const answers = await Promise.all(all.map((sandbox) => sandbox.run(['hostname'])));
    expect(answers.every((answer) => answer.stdout === 'sandbox\n')).toBe(true);
    await narrow.close();
    expect(narrow.counters()).toMatchObject({ created: 25, destroyed: 25, leaked: 0, create_failed: 0 });
  });
});
