import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { SandboxOptions, SandboxProvider } from '../types.js';
import { sh, type OpenSandbox } from './open.js';

export function lifeCycle(open: OpenSandbox, host: string, provider: () => SandboxProvider): void {
  describe('isolation, limits and life cycle', () => {
    it('shows mounts read-only, at the place asked for', async () => {
      const tool = join(host, 'tool');
      mkdirSync(tool);
      writeFileSync(join(tool, 'hello'), 'from the runtime');
      chmodSync(join(tool, 'hello'), 0o666);
      const sandbox = await open({ mounts: [{ host: tool, inside: '/opt/tool' }] });
      expect((await sandbox.run(['cat', '/opt/tool/hello'])).stdout).toBe('from the runtime');
      expect((await sh(sandbox, 'echo x > /opt/tool/hello')).code).not.toBe(0);
      expect((await sh(sandbox, 'echo x > /opt/tool/new')).code).not.toBe(0);
      expect(readFileSync(join(tool, 'hello'), 'utf8')).toBe('from the runtime');
    });

    it('keeps sandboxes out of each other', async () => {
      const [a, b] = await Promise.all([open(), open()]);
      await a.write('mine', 'a');
      await a.write('/tmp/mine', 'a');
      await sh(a, 'sleep 6543 >/dev/null 2>&1 &');
      const seen = await sh(b, 'ls /workspace /tmp $HOME; cat /proc/[0-9]*/cmdline | tr "\\0" " "');
      expect(seen.stdout).not.toContain('mine');
      expect(seen.stdout).not.toContain('sleep 6543');
    });

    it('bounds the disk with ENOSPC and stays usable', async () => {
      const MIB = 1024 * 1024;
      const sandbox = await open({ limits: { disk: 16 * MIB, memory: 256 * MIB } });
      for (const place of ['/workspace', '/tmp', '/dev/shm']) {
        const result = await sh(
          sandbox,
          `head -c 400000000 /dev/zero > ${place}/big; stat -c %s ${place}/big; rm ${place}/big`,
        );
        expect(result.stderr).toContain('No space left');
        expect(Number(result.stdout)).toBeLessThanOrEqual(128 * MIB);
      }
      expect(await sandbox.outOfMemory()).toBe(false);
      await sandbox.write('after', 'still fine');
    });

    it('bounds a fork bomb, ends it on time-out and stays usable', async () => {
      const sandbox = await open({ limits: { pids: 64 } });
      // exec: a shell that cannot fork its last command ends at once, before the time is out.
      const bomb = await sh(sandbox, 'b() { b | b & }; b & exec sleep 20', {
        timeout: 1500,
        maxOutput: 2000,
      });
      expect(bomb.timedOut).toBe(true);
      expect((await sh(sandbox, 'echo alive')).stdout).toBe('alive\n');
      const left = await sh(sandbox, 'ls -d /proc/[0-9]* | wc -l');
      expect(Number(left.stdout)).toBeLessThan(10);
    });

    it('destroys twice without harm, ends what runs, and refuses work afterwards', async () => {
      const sandbox = await open();
      await sh(sandbox, 'sleep 5432 >/dev/null 2>&1 &');
      const running = sandbox.run(['sleep', '5432']);
      const ended = expect(running).rejects.toMatchObject({ code: 'SANDBOX_E_LOST' });
      await Promise.all([sandbox.destroy(), sandbox.destroy()]);
      await ended;
      await expect(sandbox.run(['true'])).rejects.toMatchObject({ code: 'SANDBOX_E_CLOSED' });
      await sandbox.destroy();
    });

    it('refuses options that cannot work, naming them', async () => {
      const refused = (options: Partial<SandboxOptions>) =>
        expect(open(options)).rejects.toMatchObject({ code: 'SANDBOX_E_OPTIONS' });
      await refused({ id: '../x' });
      await refused({ workspaceFrom: join(host, 'nowhere') });
      await refused({ mounts: [{ host: join(host, 'nowhere'), inside: '/opt/x' }] });
      await refused({ mounts: [{ host, inside: '/workspace' }] });
      await refused({ mounts: [{ host, inside: '/opt/../etc' }] });
      await refused({ limits: { memory: 128 * 1024 ** 2, disk: 128 * 1024 ** 2 } });
      const sandbox = await open();
      await refused({ id: sandbox.id });
    });

    it('gives up an open whose signal is aborted, and leaves nothing', async () => {
      const before = await provider().sweep();
      await expect(open({ signal: AbortSignal.abort(new Error('too late')) })).rejects.toThrow('too late');
      const abort = new AbortController();
      const opening = open({ signal: abort.signal });
      setTimeout(() => abort.abort(new Error('changed my mind')), 10);
      await expect(opening).rejects.toThrow('changed my mind');
      expect(await provider().sweep()).toEqual({ swept: 0, live: before.live });
    });
  });
}
