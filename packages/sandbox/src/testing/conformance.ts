import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeMount } from '../node-mount.js';
import type { FileChange, RunResult, Sandbox, SandboxOptions, SandboxProvider } from '../types.js';

const sha256 = (data: string): string => createHash('sha256').update(data).digest('hex');
const node = nodeMount();
let counter = 0;

/** A host directory for one test, world-traversable so that an unprivileged sandbox uid may be shown parts of it. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'tw-sandbox-'));
  chmodSync(directory, 0o755);
  return directory;
}

export type OpenSandbox = (options?: Partial<SandboxOptions>) => Promise<Sandbox>;

/** Opens sandboxes with fresh ids and destroys all of them after the last test of the block. */
export function sandboxOpener(provider: () => SandboxProvider): OpenSandbox {
  const opened: Sandbox[] = [];
  afterAll(async () => {
    await Promise.all(opened.map((sandbox) => sandbox.destroy()));
  });
  return async (options = {}) => {
    const sandbox = await provider().open({ id: `t-${++counter}`, network: { kind: 'none' }, ...options });
    opened.push(sandbox);
    return sandbox;
  };
}

export const sh = (sandbox: Sandbox, script: string, options = {}): Promise<RunResult> =>
  sandbox.run(['/bin/sh', '-c', script], options);

/** What any provider must do. Call it in a test file; it registers a `describe` block. */
export function sandboxConformance(name: string, makeProvider: () => SandboxProvider): void {
  describe(`${name}: sandbox conformance`, () => {
    let provider: SandboxProvider;
    const host = scratch();
    beforeAll(() => {
      provider = makeProvider();
    });
    afterAll(() => rmSync(host, { recursive: true, force: true }));
    const open = sandboxOpener(() => provider);

    runs(open);
    files(open, host);
    telemetry(open, host);
    network(open, host);
    lifeCycle(open, host, () => provider);
  });
}

function runs(open: OpenSandbox): void {
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

function files(open: OpenSandbox, host: string): void {
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

function telemetry(open: OpenSandbox, host: string): void {
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

const CLIENT = `
const http = require('node:http');
const get = (body) => new Promise((resolve, reject) => {
  const req = http.request({ port: 8080, method: 'POST', path: '/x', agent: false }, (res) => {
    let n = 0; res.on('data', (d) => { n += d.length; }); res.on('end', () => resolve(n)); res.on('error', reject);
  });
  req.on('error', reject); req.end(body);
});
(async () => {
  const sizes = await Promise.all(Array.from({ length: 32 }, (_, i) => get('y'.repeat(i * 50000))));
  console.log(JSON.stringify(sizes));
})().catch((error) => { console.log(error.code); process.exit(1); });
`;

function network(open: OpenSandbox, host: string): void {
  describe('network', () => {
    const directory = join(host, 'model');
    const socket = join(directory, 'model.sock');
    let server: Server;
    let sandbox: Sandbox;
    const listen = async (): Promise<Server> => {
      const echo = createServer((req, res) => {
        const pieces: Buffer[] = [];
        req.on('data', (piece: Buffer) => pieces.push(piece));
        req.on('end', () => res.end(Buffer.concat(pieces)));
      });
      await new Promise<void>((resolve) => echo.listen(socket, resolve));
      chmodSync(socket, 0o666);
      return echo;
    };
    const close = (): Promise<unknown> => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    };
    beforeAll(async () => {
      mkdirSync(directory);
      server = await listen();
      sandbox = await open({ network: { kind: 'model-socket', directory }, mounts: [node.mount] });
    });
    afterAll(close);

    it('leads the model URL to the socket, many connections with large bodies at once', async () => {
      expect(sandbox.modelUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
      const { stdout, stderr } = await sandbox.run([node.argv0, '-e', CLIENT]);
      expect(stderr).toBe('');
      expect(JSON.parse(stdout)).toEqual(Array.from({ length: 32 }, (_, i) => i * 50000));
    });

    it('keeps the way back open when the client has finished sending', async () => {
      const script = `
        const socket = require('node:net').connect({ port: 8080, allowHalfOpen: true });
        socket.end('POST / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Length: 5\\r\\n\\r\\nhello');
        socket.on('data', (d) => process.stdout.write(d));`;
      expect((await sandbox.run([node.argv0, '-e', script], { timeout: 5000 })).stdout).toMatch(/hello\s*$/);
    });

    it('waits for a gateway that is being restarted', async () => {
      await close();
      const pending = sandbox.run([node.argv0, '-e', CLIENT], { timeout: 20_000 });
      await new Promise((resolve) => setTimeout(resolve, 500));
      server = await listen();
      expect(JSON.parse((await pending).stdout)).toHaveLength(32);
    });

    it('reaches nothing else: no host listener, no outside address', async () => {
      const listener = createTcpServer((peer) => peer.end('reached'));
      await new Promise<void>((resolve) => listener.listen(0, '0.0.0.0', resolve));
      const { port } = listener.address() as AddressInfo;
      const script = `
        const net = require('node:net');
        const attempt = (host, port) => new Promise((resolve) => {
          const socket = net.connect({ host, port, timeout: 2000 });
          socket.on('connect', () => resolve('connected'));
          socket.on('timeout', () => resolve('timeout'));
          socket.on('error', (error) => resolve(error.code));
        });
        Promise.all([attempt('127.0.0.1', ${port}), attempt('192.0.2.1', 80), attempt('8.8.8.8', 53), attempt('example.com', 80)])
          .then((all) => { console.log(all.join(' ')); process.exit(0); });`;
      const { stdout } = await sandbox.run([node.argv0, '-e', script]);
      listener.close();
      const [local, testNet, outside, name] = stdout.trim().split(' ');
      expect(local).toBe('ECONNREFUSED');
      expect([testNet, outside]).toEqual(['ENETUNREACH', 'ENETUNREACH']);
      expect(name).toMatch(/^(EAI_AGAIN|ENOTFOUND|ECONNREFUSED)$/);
    });

    it('has no model port without a model socket', async () => {
      const closed = await open({ mounts: [node.mount] });
      expect(closed.modelUrl).toBeNull();
      expect((await closed.run([node.argv0, '-e', CLIENT])).stdout.trim()).toBe('ECONNREFUSED');
    });
  });
}

function lifeCycle(open: OpenSandbox, host: string, provider: () => SandboxProvider): void {
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
      const bomb = await sh(sandbox, 'b() { b | b & }; b; sleep 20', { timeout: 1500, maxOutput: 2000 });
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
