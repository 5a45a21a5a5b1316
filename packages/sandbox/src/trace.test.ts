import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { BubblewrapProvider } from './bubblewrap.js';
import { sandboxOpener, scratch, sh } from './testing/open.js';
import { processesWith } from './testing/host.js';
import { parseTrace } from './trace.js';

const root = scratch();
const provider = new BubblewrapProvider({ root: join(root, 'root'), run: 'trace' });
const open = sandboxOpener(() => provider);

afterAll(async () => {
  await provider.close();
  rmSync(root, { recursive: true, force: true });
});

const lines = (...text: string[]): string => text.map((line) => `${line}\n`).join('');

describe('parseTrace', () => {
  it('reads arguments byte for byte, parents by translated pids, and how a process ended', () => {
    const text = lines(
      String.raw`10 1.000 execve("/bin/sh", ["sh", "-c", "echo \"a, b\"\n\303\251"], 0x7ff /* 3 vars */) = 0`,
      `10 2.000 clone(child_stack=NULL, flags=SIGCHLD) = 3 /* 11 in strace's PID NS */`,
      `11 2.500 execve("/bin/cat", ["cat", "x"...], 0x7ff /* 1 var */) = 0`,
      '11 3.250 +++ exited with 2 +++',
      '10 4.000 +++ killed by SIGKILL (core dumped) +++',
    );
    expect(parseTrace(text)).toEqual([
      {
        pid: 10,
        parentPid: 0,
        argv: ['sh', '-c', 'echo "a, b"\né'],
        start: 1000,
        end: 4000,
        code: null,
        signal: 'SIGKILL',
      },
      { pid: 11, parentPid: 10, argv: ['cat', 'x'], start: 2500, end: 3250, code: 2, signal: null },
    ]);
  });

  it('takes a failed attempt for none, an interrupted line for one, a replaced program for two', () => {
    const text = lines(
      '5 1.0 execve("/a/ls", ["ls"], 0x1 /* 1 var */) = -1 ENOENT (No such file or directory)',
      '5 2.0 execve("/b/ls", ["ls"], 0x1 /* 1 var */ <unfinished ...>',
      '6 2.1 +++ exited with 0 +++',
      '5 2.2 <... execve resumed>) = 0',
      '5 3.0 execve("/bin/env", ["env"], 0x1 /* 1 var */) = 0',
      '5 4.0 +++ exited with 0 +++',
    );
    expect(parseTrace(text).map(({ argv, start, end, code }) => [argv[0], start, end, code])).toEqual([
      ['ls', 2200, 3000, null],
      ['env', 3000, 4000, 0],
    ]);
  });

  it('is not broken by anything that does not look like strace', () => {
    expect(parseTrace('rubbish\n12 execve(\n7 1.0 execve("x"\n\n')).toEqual([]);
  });
});

describe('trace', () => {
  it('names every command, its parent, its time and its exit code', async () => {
    const sandbox = await open({ trace: true });
    const before = Date.now();
    const run = await sandbox.run(['/bin/sh', '-c', 'ls nowhere; (exit 7); /bin/true & wait; exit 3']);
    const executions = await sandbox.executions();
    expect(run.code).toBe(3);
    expect(executions.map(({ argv }) => argv[0])).toEqual(['/bin/sh', 'ls', '/bin/true']);
    const [shell, ls, quiet] = executions as [
      (typeof executions)[0],
      (typeof executions)[0],
      (typeof executions)[0],
    ];
    expect([shell.code, ls.code, quiet.code]).toEqual([3, 2, 0]);
    expect(ls.parentPid).toBe(shell.pid);
    for (const { start, end } of executions) {
      expect(start).toBeGreaterThanOrEqual(before - 1);
      expect(end).toBeGreaterThanOrEqual(start);
      expect(end).toBeLessThanOrEqual(Date.now() + 1);
    }
    await sandbox.destroy();
  });

  it('keeps every limit of a sandbox, and its own file out of reach', async () => {
    const sandbox = await open({ trace: true });
    expect((await sandbox.run(['/bin/sh', '-c', 'unshare -U true; echo $?'])).stdout).not.toBe('0\n');
    expect((await sandbox.run(['/usr/bin/python3', '-c', PTRACE])).stdout.trim()).toBe('-1 1');
    const search = "find / -name exec -path '*/t/*' 2>/dev/null; cat /proc/[0-9]*/comm | grep strace";
    expect((await sh(sandbox, search)).stdout).toBe('');
    expect((await sandbox.run(['/bin/sleep', '5'], { timeout: 100 })).timedOut).toBe(true);
    // The tracer writes its line a moment after the process is gone.
    await vi.waitFor(async () =>
      expect((await sandbox.executions()).at(-1)).toMatchObject({
        argv: ['/bin/sleep', '5'],
        signal: 'SIGKILL',
      }),
    );
    await sandbox.destroy();
    expect(existsSync(join(root, 'root', sandbox.id))).toBe(false);
    expect(processesWith(`/sb/${sandbox.id}`)).toEqual([]);
  });

  it('is off unless it was asked for', async () => {
    const sandbox = await open();
    await sandbox.run(['/bin/true']);
    expect(await sandbox.executions()).toEqual([]);
    await sandbox.destroy();
  });
});

/** PTRACE_TRACEME, refused with EPERM by the filter. */
const PTRACE =
  'import ctypes; c = ctypes.CDLL(None, use_errno=True); r = c.ptrace(0, 0, 0, 0); print(r, ctypes.get_errno())';
