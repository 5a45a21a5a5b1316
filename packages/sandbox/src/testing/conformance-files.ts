import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../types.js';
import { sh, type OpenSandbox } from './open.js';

export function files(open: OpenSandbox, host: string): void {
  describe('files', () => {
    let sandbox: Sandbox;
    beforeAll(async () => {
      sandbox = await open();
    });

    it('gives back the bytes written, makes parents and sets the mode', async () => {
      const data = Buffer.from(Array.from({ length: 1_500_000 }, (_, i) => (i * 7919) & 255));
      await sandbox.write('a/b/c.bin', data, { mode: 0o750 });
      expect(Buffer.compare(await sandbox.read('a/b/c.bin'), data)).toBe(0);
      expect((await sandbox.run(['stat', '-c', '%a %s', 'a/b/c.bin'])).stdout).toBe('750 1500000\n');
      await sandbox.write('a/b/c.bin', 'short');
      expect(Buffer.from(await sandbox.read(`${sandbox.workspace}/a/b/c.bin`)).toString()).toBe('short');
    });

    it('names the error of a file that cannot be read or written', async () => {
      await expect(sandbox.read('none')).rejects.toMatchObject({
        code: 'SANDBOX_E_FILE',
        data: { errno: 'ENOENT' },
      });
      await expect(sandbox.read('.')).rejects.toMatchObject({
        code: 'SANDBOX_E_FILE',
        data: { errno: 'EISDIR' },
      });
      await expect(sandbox.write('/usr/x', 'x')).rejects.toMatchObject({ code: 'SANDBOX_E_FILE' });
      await sandbox.run(['mkfifo', 'fifo']);
      await expect(sandbox.read('fifo')).rejects.toMatchObject({ code: 'SANDBOX_E_FILE' });
      await expect(sandbox.write('fifo', 'x')).rejects.toMatchObject({ code: 'SANDBOX_E_FILE' });
    });

    it('follows no link and no .. to the host', async () => {
      const secret = join(host, 'secret.txt');
      writeFileSync(secret, 'host secret');
      await sandbox.run(['ln', '-s', secret, 'to-host']);
      await expect(sandbox.read('to-host')).rejects.toMatchObject({ data: { errno: 'ENOENT' } });
      await expect(sandbox.read(`../../../../..${secret}`)).rejects.toMatchObject({
        data: { errno: 'ENOENT' },
      });
      await sandbox.run(['ln', '-s', '/etc/passwd', 'passwd']);
      expect(Buffer.from(await sandbox.read('passwd')).toString()).not.toBe(
        readFileSync('/etc/passwd', 'utf8'),
      );
      await sandbox.write('to-host', 'from inside');
      expect(readFileSync(secret, 'utf8')).toBe('host secret');
      expect((await sandbox.run(['stat', '-c', '%F', 'to-host'])).stdout.trim()).toBe('regular file');
    });
  });
}

/** What a grader needs: its own files in place of the task's, not the task's uid. */
export function covers(open: OpenSandbox, host: string): void {
  describe('covers and users', () => {
    it('puts a host directory in place of whatever the workspace has there, read-only', async () => {
      const own = join(host, 'own-reward');
      mkdirSync(own);
      writeFileSync(join(own, 'reward.sh'), 'echo ours\n', { mode: 0o600 });
      const theirs = { directory: 'reward', file: 'f', link: 'l' };
      const left = join(host, 'left-behind');
      mkdirSync(join(left, theirs.directory), { recursive: true });
      writeFileSync(join(left, 'reward/reward.sh'), 'echo theirs\n');
      writeFileSync(join(left, 'f'), 'a file');
      symlinkSync('/etc', join(left, 'l'));
      const paths = [...Object.values(theirs), 'new/deep'];
      const sandbox = await open({
        workspaceFrom: left,
        covers: paths.map((path) => ({ host: own, path })),
        user: 'grader',
      });
      for (const path of paths) {
        expect((await sandbox.run(['sh', `${path}/reward.sh`])).stdout, path).toBe('ours\n');
        expect((await sh(sandbox, `echo x > ${path}/reward.sh || rm ${path}/reward.sh`)).code, path).not.toBe(
          0,
        );
        expect((await sh(sandbox, `mv ${path} moved`)).code, path).not.toBe(0);
      }
      expect((await sh(sandbox, 'id -un; touch mine; stat -c %U mine f/..')).stdout).toBe(
        'grader\ngrader\ngrader\n',
      );
      expect((await sandbox.changes()).map(({ path }) => path)).toEqual(['mine']);
      expect(readFileSync(join(left, 'reward/reward.sh'), 'utf8')).toBe('echo theirs\n');
    });

    it('refuses a cover outside the workspace', async () => {
      for (const path of ['../x', '/x', 'a/../b', '.', 'a/']) {
        const opening = open({ covers: [{ host, path }] });
        await expect(opening, path).rejects.toMatchObject({ code: 'SANDBOX_E_OPTIONS' });
      }
    });
  });
}
