import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { FileChange, Sandbox } from '../types.js';
import { sh, type OpenSandbox } from './open.js';

const sha256 = (data: string): string => createHash('sha256').update(data).digest('hex');

export function telemetry(open: OpenSandbox, host: string): void {
  describe('changes and export', () => {
    let sandbox: Sandbox;
    const source = join(host, 'task');
    beforeAll(async () => {
      mkdirSync(join(source, 'keep/deep'), { recursive: true });
      mkdirSync(join(source, 'replaced/inner'), { recursive: true });
      mkdirSync(join(source, 'removed'));
      writeFileSync(join(source, 'notes.txt'), 'one\n');
      writeFileSync(join(source, 'gone.txt'), 'gone\n');
      writeFileSync(join(source, 'touched.txt'), 'same\n');
      writeFileSync(join(source, 'run.sh'), '#!/bin/sh\necho ran\n');
      chmodSync(join(source, 'run.sh'), 0o755);
      writeFileSync(join(source, 'keep/deep/file'), 'x');
      writeFileSync(join(source, 'replaced/old'), 'x');
      writeFileSync(join(source, 'replaced/inner/old'), 'x');
      writeFileSync(join(source, 'removed/old'), 'x');
      symlinkSync('notes.txt', join(source, 'link'));
      sandbox = await open({ workspaceFrom: source });
    });

    it('starts with the task and no changes', async () => {
      expect(await sandbox.changes()).toEqual([]);
      expect((await sandbox.run(['./run.sh'])).stdout).toBe('ran\n');
      expect((await sandbox.run(['cat', 'link'])).stdout).toBe('one\n');
    });

    it('tells each kind of change exactly', async () => {
      const script = [
        'echo two >> notes.txt',
        'rm gone.txt',
        'touch touched.txt',
        'chmod 700 run.sh',
        'echo new > keep/deep/new',
        'rm -r replaced && mkdir replaced && echo fresh > replaced/fresh',
        'rm -r removed',
        'mkdir made && echo in > made/in',
        'ln -s /etc/passwd to-passwd',
        'mkfifo pipe',
        "printf x > 'odd name'",
      ].join(' && ');
      expect((await sh(sandbox, script)).stderr).toBe('');
      const changes = Object.fromEntries((await sandbox.changes()).map(({ path, ...rest }) => [path, rest]));
      const file = (kind: FileChange['kind'], text: string, mode = 0o644) => ({
        kind,
        mode,
        size: text.length,
        sha256: sha256(text),
      });
      expect(changes).toEqual({
        'notes.txt': file('modify', 'one\ntwo\n'),
        'gone.txt': { kind: 'delete', mode: 0, size: 0 },
        'run.sh': file('modify', '#!/bin/sh\necho ran\n', 0o700),
        'keep/deep/new': file('create', 'new\n'),
        replaced: { kind: 'opaque', mode: 0o755, size: 0 },
        'replaced/fresh': file('create', 'fresh\n'),
        removed: { kind: 'delete', mode: 0, size: 0 },
        made: { kind: 'dir', mode: 0o755, size: 0 },
        'made/in': file('create', 'in\n'),
        'to-passwd': { kind: 'symlink', mode: 0o777, size: 11, target: '/etc/passwd' },
        pipe: { kind: 'other', mode: 0o644, size: 0 },
        'odd name': file('create', 'x'),
      });
    });

    it('exports the workspace with links as links, and without pipes', async () => {
      const target = join(host, 'export');
      await sandbox.exportWorkspace(target);
      expect(readlinkSync(join(target, 'to-passwd'))).toBe('/etc/passwd');
      expect(readlinkSync(join(target, 'link'))).toBe('notes.txt');
      expect(readFileSync(join(target, 'notes.txt'), 'utf8')).toBe('one\ntwo\n');
      expect(readFileSync(join(target, 'keep/deep/file'), 'utf8')).toBe('x');
      expect(lstatSync(join(target, 'run.sh')).mode & 0o777).toBe(0o700);
      for (const name of ['gone.txt', 'removed', 'replaced/old', 'pipe'])
        expect(existsSync(join(target, name))).toBe(false);
      await expect(sandbox.exportWorkspace(target)).rejects.toMatchObject({ code: 'SANDBOX_E_EXPORT' });
    });

    it('leaves the task itself untouched, so that the next sandbox starts clean', async () => {
      expect(readFileSync(join(source, 'notes.txt'), 'utf8')).toBe('one\n');
      const other = await open({ workspaceFrom: source });
      expect((await other.run(['cat', 'notes.txt', 'gone.txt'])).stdout).toBe('one\ngone\n');
      expect(await other.changes()).toEqual([]);
    });

    it('refuses to export more than the disk can hold: a sparse file costs nothing inside', async () => {
      const sparse = await open();
      await sparse.run(['truncate', '-s', '100G', 'huge']);
      const [change] = await sparse.changes();
      expect(change).toMatchObject({ path: 'huge', size: 100 * 1024 ** 3 });
      expect(change).not.toHaveProperty('sha256');
      const target = join(host, 'sparse');
      await expect(sparse.exportWorkspace(target)).rejects.toMatchObject({ code: 'SANDBOX_E_TREE' });
    });
  });
}
