import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sh, type OpenSandbox } from './open.js';

export function snapshots(open: OpenSandbox, host: string): void {
  describe('snapshot and fork', () => {
    it('lets many go on from one moment, none seeing another or what came later', async () => {
      const source = join(host, 'forked');
      mkdirSync(source);
      writeFileSync(join(source, 'kept.txt'), 'kept\n');
      writeFileSync(join(source, 'removed.txt'), 'removed\n');
      const trunk = await open({ workspaceFrom: source });
      await sh(trunk, 'rm removed.txt; mkdir d; echo before > d/made; ln -s d/made link; chmod 750 d');
      const snapshot = await trunk.snapshot();
      await sh(trunk, 'echo after > d/made; echo late > late.txt');

      const [left, right] = await Promise.all([
        open({ workspaceFrom: snapshot }),
        open({ workspaceFrom: snapshot }),
      ]);
      expect(await left.changes()).toEqual([]);
      await sh(left, 'echo left >> link');
      const look = 'cat d/made link; ls; stat -c %a d';
      expect((await sh(left, look)).stdout).toBe('before\nleft\nbefore\nleft\nd\nkept.txt\nlink\n750\n');
      expect((await sh(right, look)).stdout).toBe('before\nbefore\nd\nkept.txt\nlink\n750\n');
      expect((await left.changes()).map(({ path }) => path)).toEqual(['d/made']);
      expect((await sh(trunk, 'cat d/made')).stdout).toBe('after\n');
    });

    it('outlives its sandbox, and is gone once released', async () => {
      const trunk = await open();
      await trunk.write('made', 'x');
      const snapshot = await trunk.snapshot();
      expect(snapshot.bytes).toBe(1);
      await trunk.destroy();
      const fork = await open({ workspaceFrom: snapshot });
      snapshot.release();
      snapshot.release();
      expect((await sh(fork, 'cat made')).stdout).toBe('x');
      await fork.destroy();
      await expect(open({ workspaceFrom: snapshot })).rejects.toMatchObject({ code: 'SANDBOX_E_OPTIONS' });
    });
  });
}
