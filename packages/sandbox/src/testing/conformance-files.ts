import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../types.js';
import type { OpenSandbox } from './open.js';

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
