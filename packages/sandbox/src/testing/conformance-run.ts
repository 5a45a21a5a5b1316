import { beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../types.js';
import { sh, type OpenSandbox } from './open.js';

export function runs(open: OpenSandbox): void {
  describe('run', () => {
    let sandbox: Sandbox;
    beforeAll(async () => {
      sandbox = await open();
    });

    it('keeps streams apart, passes env, cwd and stdin, and reports the exit code', async () => {
      await sandbox.run(['mkdir', '-p', 'sub']);
      const result = await sh(sandbox, 'cat; pwd; echo "$GREETING" >&2; exit 3', {
        env: { GREETING: 'hi there' },
        cwd: 'sub',
        stdin: 'from stdin\n',
      });
      expect(result).toMatchObject({
        code: 3,
        signal: null,
        stdout: `from stdin\n${sandbox.workspace}/sub\n`,
        stderr: 'hi there\n',
        timedOut: false,
        truncated: false,
      });
    });

    it('passes a large stdin whole, also to a command that does not read it', async () => {
      const stdin = 'x'.repeat(3_000_000);
      expect((await sandbox.run(['wc', '-c'], { stdin })).stdout.trim()).toBe('3000000');
      expect((await sandbox.run(['true'], { stdin })).code).toBe(0);
    });

    it('gives 127 for a missing command, 126 for a missing directory, and the signal of a killed one', async () => {
      const missing = await sandbox.run(['no-such-command']);
      expect(missing.code).toBe(127);
      expect(missing.stderr).toContain('ENOENT');
      expect((await sandbox.run(['true'], { cwd: 'nowhere' })).code).toBe(126);
      expect(await sh(sandbox, 'kill -TERM $$')).toMatchObject({ code: null, signal: 'SIGTERM' });
    });

    it('keeps maxOutput bytes of each stream and says that there were more', async () => {
      const result = await sh(sandbox, 'yes | head -c 5000000', { maxOutput: 1000 });
      expect(result.code).toBe(0);
      expect(result.stdout.length).toBe(1000);
      expect(result.truncated).toBe(true);
    });

    it('counts CPU seconds of children', async () => {
      const result = await sh(sandbox, 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done');
      expect(result.cpuSeconds).toBeGreaterThan(0.03);
      expect(result.cpuSeconds).toBeLessThan(result.wallMs / 1000 + 0.2);
    });

    it('ends the whole tree on time-out, daemons that left the process group too', async () => {
      const result = await sh(
        sandbox,
        'setsid sh -c "sleep 7777 & sleep 7777" & (setsid nohup sleep 7777 >/dev/null 2>&1 &); sleep 7777',
        {
          timeout: 400,
        },
      );
      expect(result.timedOut).toBe(true);
      expect(result.signal).toBe('SIGKILL');
      expect(result.wallMs).toBeGreaterThanOrEqual(400);
      expect(result.wallMs).toBeLessThan(5000);
      expect((await sh(sandbox, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).stdout).not.toContain(
        'sleep 7777',
      );
    });

    it('ends the command and rejects when the signal aborts', async () => {
      const abort = new AbortController();
      const running = sh(sandbox, 'sleep 8888', { signal: abort.signal });
      setTimeout(() => abort.abort(new Error('enough')), 100);
      await expect(running).rejects.toThrow('enough');
      expect((await sh(sandbox, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).stdout).not.toContain(
        'sleep 8888',
      );
    });

    it('runs many commands at once', async () => {
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, i) => sh(sandbox, `sleep 0.05; echo ${i}`)),
      );
      expect(results.map((result) => result.stdout)).toEqual(Array.from({ length: 20 }, (_, i) => `${i}\n`));
    });

    it('leaves background processes alone when the command ends by itself', async () => {
      await sh(sandbox, '(sleep 0.3; echo later > late.txt) & echo started');
      await expect
        .poll(() => sh(sandbox, 'cat late.txt').then((r) => r.stdout), { timeout: 5000 })
        .toBe('later\n');
    });

    it('hands graders a handle that can only run, read and write', async () => {
      const session = sandbox.session();
      expect(Object.keys(session).sort()).toEqual(['home', 'id', 'read', 'run', 'workspace', 'write']);
      await session.write('from-session', 'x');
      expect((await session.run(['cat', 'from-session'])).stdout).toBe('x');
      expect((await session.run(['sh', '-c', 'echo $HOME'])).stdout.trim()).toBe(session.home);
    });

    it('runs as an ordinary user whom the system knows', async () => {
      const { stdout } = await sh(sandbox, 'id -u; id -un; touch $HOME/x /tmp/y && echo writable');
      const [uid, name, writable] = stdout.split('\n');
      expect(Number(uid)).toBeGreaterThan(0);
      expect(name).toBe('sandbox');
      expect(writable).toBe('writable');
    });
  });
}
