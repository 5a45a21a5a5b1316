import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { BubblewrapProvider } from './bubblewrap.js';
import { scratch, sh } from './testing/open.js';
import { processesWith, tracesOf } from './testing/host.js';

const host = scratch();
const root = join(host, 'root');
const inspect = () => ({ machine: null, reasons: ['a test says so'] });
afterAll(() => rmSync(host, { recursive: true, force: true }));

describe('tier none', () => {
  it('refuses, naming what is missing', async () => {
    const provider = new BubblewrapProvider({ root, inspect });
    expect(await provider.probe()).toEqual({ tier: 'none', reasons: ['a test says so'] });
    await expect(provider.open({ id: 'a', network: { kind: 'none' } })).rejects.toMatchObject({
      code: 'SANDBOX_E_TIER',
      message: expect.stringContaining('a test says so') as string,
    });
  });

  it('runs plain processes when told to, marked as tier none, and tidies up', async () => {
    const task = join(host, 'task');
    mkdirSync(join(task, 'old'), { recursive: true });
    writeFileSync(join(task, 'notes.txt'), 'one\n');
    writeFileSync(join(task, 'old/file'), 'x');
    const provider = new BubblewrapProvider({ root, inspect, unsafe: true });
    const sandbox = await provider.open({ id: 'a', workspaceFrom: task, network: { kind: 'none' } });
    expect(sandbox.tier).toBe('none');
    await sandbox.write('new.txt', 'new');
    const script = 'echo two >> notes.txt; rm -r old; (setsid sleep 34343 >/dev/null 2>&1 &); echo $HOME';
    expect((await sh(sandbox, script)).stdout.trim()).toBe(sandbox.home);
    expect((await sandbox.changes()).map(({ path, kind }) => `${kind} ${path}`).sort()).toEqual([
      'create new.txt',
      'delete old',
      'modify notes.txt',
    ]);
    const late = await sh(sandbox, 'setsid sleep 34343 & sleep 34343', { timeout: 200 });
    expect(late.timedOut).toBe(true);
    expect(processesWith('sleep 34343', { exact: true }).length).toBe(1); // that of the first command
    await sandbox.exportWorkspace(join(host, 'export'));
    expect(readFileSync(join(host, 'export/notes.txt'), 'utf8')).toBe('one\ntwo\n');
    expect(readFileSync(join(task, 'notes.txt'), 'utf8')).toBe('one\n');
    const misplaced = {
      id: 'b',
      network: { kind: 'none' as const },
      mounts: [{ host: '/usr/share', inside: '/opt/x' }],
    };
    await expect(provider.open(misplaced)).rejects.toMatchObject({ code: 'SANDBOX_E_TIER' });
    await provider.close();
    expect(processesWith('sleep 34343', { exact: true })).toEqual([]);
    expect(await tracesOf(root, [])).toEqual([]);
  });
});
