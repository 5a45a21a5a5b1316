import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BubblewrapProvider } from './bubblewrap.js';
import { nodeMount } from './node-mount.js';
import { DENIED_SYSCALLS } from './seccomp.js';
import { sandboxOpener, scratch, sh } from './testing/open.js';
import { processesWith } from './testing/host.js';
import type { Sandbox } from './types.js';

const root = scratch();
const provider = new BubblewrapProvider({ root: join(root, 'root'), run: 'security' });
afterAll(async () => {
  await provider.close();
  rmSync(root, { recursive: true, force: true });
});
const asRoot = process.getuid?.() === 0;

describe('what a task cannot do', () => {
  const open = sandboxOpener(() => provider);
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await open({ mounts: [nodeMount().mount] });
  });

  it('read host secrets or host files at all', async () => {
    const result = await sh(sandbox, 'cat /etc/shadow; ls /root /home /var/lib /run /mnt');
    expect(result.stdout.trim().split('\n').sort()).toEqual(['/run:', 'treeward']);
    expect(result.stderr).toContain('/etc/shadow: No such file');
    expect(result.stderr).toContain("'/root': No such file");
  });

  it('write kernel settings', async () => {
    const before = readFileSync('/proc/sys/vm/swappiness', 'utf8');
    const result = await sh(sandbox, `echo ${before.trim()} > /proc/sys/vm/swappiness`);
    expect(result.code).not.toBe(0);
    expect(result.stderr).toMatch(/Permission denied|Read-only/);
    expect((await sh(sandbox, 'echo b > /proc/sysrq-trigger')).code).not.toBe(0);
  });

  it.runIf(asRoot)('run under a host uid that owns anything', async () => {
    await sh(sandbox, 'sleep 45671 >/dev/null 2>&1 &');
    const [pid] = processesWith('sleep 45671', { exact: true });
    expect(pid).toBeDefined();
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    expect(status).toMatch(/^Uid:\t20001\t20001\t20001\t20001$/m);
    expect(status).toMatch(/^Groups:\t\s*$/m);
    expect(status).toMatch(/^CapEff:\t0+$/m);
    expect(status).toMatch(/^CapPrm:\t0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
  });

  it('open a nested namespace, mount, trace or use a denied system call', async () => {
    for (const command of [
      'unshare -U true',
      'unshare -Urm true',
      'mount -t tmpfs x /tmp',
      'nsenter -t 1 -m true',
    ]) {
      expect((await sh(sandbox, command)).code, command).not.toBe(0);
    }
    // Through the numbers themselves: EPERM (1) is the filter's answer, not ENOSYS or EFAULT of the call.
    const script = `
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
out = {}
for name, number in json.loads(${JSON.stringify(JSON.stringify(DENIED_SYSCALLS))}).items():
    ctypes.set_errno(0)
    out[name] = [libc.syscall(number, -1, -1, -1, -1, -1), ctypes.get_errno()]
out["clone_newuser"] = [libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0), ctypes.get_errno()]
print(json.dumps(out))`;
    const { stdout, stderr } = await sandbox.run(['/usr/bin/python3', '-c', script]);
    expect(stderr).toBe('');
    const results = JSON.parse(stdout) as Record<string, [number, number]>;
    const { clone_newuser: clone, ...denied } = results;
    for (const [name, result] of Object.entries(denied)) expect(result, name).toEqual([-1, 1]);
    expect(clone?.[0]).toBe(-1);
  });

  it('write what is not its own: system, runtimes, its own root, device and etc directories', async () => {
    for (const path of [
      '/x',
      '/usr/x',
      '/usr/bin/node2',
      '/etc/passwd',
      '/etc/x',
      '/dev/x',
      '/run/x',
      '/opt/x',
      '/var/x',
    ]) {
      expect((await sh(sandbox, `echo x > ${path}`)).code, path).not.toBe(0);
    }
    expect((await sh(sandbox, `echo x >> ${nodeMount().argv0}`)).code).not.toBe(0);
  });

  it('reach the agent: its memory, its descriptors, its life', async () => {
    const attack = await sh(
      sandbox,
      'ls /proc/1/fd /proc/2/fd; cat /proc/1/environ /proc/1/maps; kill -9 1; kill -9 -1',
    );
    expect(attack.signal).toBe('SIGKILL');
    const look = await sh(sandbox, 'ls /proc/1/fd; cat /proc/1/environ /proc/1/mem; echo done');
    expect(look.stdout).toBe('done\n');
    expect(look.stderr).toContain('Permission denied');
  });

  it('keep running by killing its own monitor', async () => {
    const result = await sh(sandbox, 'setsid sleep 45672 & kill -9 $PPID; sleep 45672', { timeout: 20_000 });
    expect(result).toMatchObject({ code: null, signal: 'SIGKILL', timedOut: false });
    // The answer may come before the last of them is gone; none may stay.
    await expect
      .poll(async () => (await sh(sandbox, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).stdout, {
        timeout: 10_000,
      })
      .not.toContain('sleep 45672');
  });

  it('see or change cgroups, host processes or the supervisor environment', async () => {
    const { stdout } = await sh(sandbox, 'ls /sys/fs/cgroup 2>/dev/null; env; ls -d /proc/[0-9]* | wc -l');
    const lines = stdout.trim().split('\n');
    expect(Number(lines.at(-1))).toBeLessThan(8);
    const names = lines.slice(0, -1).map((line) => line.split('=')[0]);
    expect(
      names.filter(
        (name) => !['PATH', 'HOME', 'TMPDIR', 'LANG', 'USER', 'PWD', 'OLDPWD', 'SHLVL', '_'].includes(name!),
      ),
    ).toEqual([]);
  });

  it('use the model directory for anything but its socket', async () => {
    const directory = join(root, 'socket');
    mkdirSync(directory, { mode: 0o777 });
    writeFileSync(join(directory, 'other'), 'x', { mode: 0o666 });
    const inside = await open({ network: { kind: 'model-socket', directory } });
    expect((await sh(inside, 'echo y > /run/model/other')).code).not.toBe(0);
    expect((await sh(inside, 'rm -f /run/model/other; touch /run/model/new')).code).not.toBe(0);
    expect(readFileSync(join(directory, 'other'), 'utf8')).toBe('x');
    expect(existsSync(join(directory, 'new'))).toBe(false);
  });

  it('escape an export by swapping a directory for a link while it is read', async () => {
    const secret = join(root, 'secret-dir');
    mkdirSync(secret);
    writeFileSync(join(secret, 'f'), 'host secret');
    const racing = await open();
    await sh(
      racing,
      `mkdir d; echo inside > d/f; (while :; do mv d e; ln -s ${secret} d; rm d; mv e d; done) >/dev/null 2>&1 &`,
    );
    for (let i = 0; i < 30; i++) {
      const target = join(root, `export-${i}`);
      await racing.exportWorkspace(target);
      for (const name of ['d', 'e']) {
        const stat = lstatSync(join(target, name), { throwIfNoEntry: false });
        if (stat?.isSymbolicLink()) expect(readlinkSync(join(target, name))).toBe(secret);
        // A directory that vanished while it was copied may be empty.
        else if (stat)
          expect(
            readdirSync(join(target, name)).map((f) => readFileSync(join(target, name, f), 'utf8')),
          ).not.toContain('host secret');
      }
      for (const change of await racing.changes()) expect(change.path).not.toContain('secret');
    }
  });
});

describe('harness runtimes inside', () => {
  const open = sandboxOpener(() => provider);
  const { TREEWARD_CACHE, XDG_CACHE_HOME, HOME } = process.env;
  const cache = TREEWARD_CACHE ?? join(XDG_CACHE_HOME ?? join(HOME ?? '/', '.cache'), 'treeward');
  const claude = join(
    cache,
    'harnesses/claude-code@2.1.332/node_modules/@anthropic-ai/claude-code-linux-x64',
  );
  const here = asRoot && existsSync(join(claude, 'claude'));
  if (!here) console.warn(`skipped: no Claude Code in ${cache}, or not root`);

  it.skipIf(!here)('start Claude Code from a directory that only root can walk to', async () => {
    const sandbox = await open({ mounts: [{ host: claude, inside: '/opt/claude-code' }] });
    const result = await sandbox.run(['/opt/claude-code/claude', '--version'], { timeout: 60_000 });
    expect(result.stderr).toBe('');
    expect(result.stdout).toContain('2.1.332');
  });
});
