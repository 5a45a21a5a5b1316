import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildImage } from './docker/build-image.js';
import { DockerProvider } from './docker/docker-provider.js';
import { nodeMount } from './node-mount.js';
import { sandboxConformance } from './testing/conformance.js';
import { daemonUnavailable, startDaemon, type Daemon } from './docker/private-daemon.js';
import { DoomedOwner } from './testing/doomed-owner.js';
import { escapeSuite } from './testing/escape-suite.js';
import { tracesOf } from './testing/host.js';
import { scratch, sh } from './testing/open.js';

const MIB = 1024 * 1024;
const unavailable = daemonUnavailable();
if (unavailable) console.warn(`skipped: no Docker daemon can be had here: ${unavailable}`);

describe.skipIf(unavailable !== null)('docker, on a daemon of its own', () => {
  const folder = scratch();
  const root = join(folder, 'root');
  let daemon: Daemon;
  let provider: DockerProvider;

  beforeAll(async () => {
    const before = readFileSync('/proc/sys/net/ipv4/ip_forward', 'utf8');
    daemon = await startDaemon();
    expect(readFileSync('/proc/sys/net/ipv4/ip_forward', 'utf8')).toBe(before);
    await buildImage({ socket: daemon.socket, say: (text) => console.info(text) });
    provider = new DockerProvider({ socket: daemon.socket, root, run: 'test' });
  }, 400_000);
  afterAll(async () => {
    await provider?.close();
    const left = await tracesOf(root, []);
    await daemon?.stop();
    rmSync(folder, { recursive: true, force: true });
    expect(left).toEqual([]);
  });

  it('offers the full tier, and says with which image', async () => {
    const { tier, reasons } = await provider.probe();
    expect(reasons.join()).toMatch(/image sha256:[0-9a-f]{64}/);
    expect(tier).toBe('full');
  });

  sandboxConformance('docker', () => provider);
  escapeSuite('docker', () => provider);

  it('ends a memory bomb and says so, during the sandbox’s life and after', async () => {
    const sandbox = await provider.open({
      id: 'bomb',
      network: { kind: 'none' },
      limits: { memory: 128 * MIB, disk: 16 * MIB },
    });
    expect(await sandbox.outOfMemory()).toBe(false);
    const eat = 'x = []\nwhile True: x.append(bytearray(8 * 1024 * 1024))';
    const bomb = await sandbox.run(['/usr/bin/python3', '-c', eat], { timeout: 30_000 });
    expect(bomb).toMatchObject({ code: null, signal: 'SIGKILL', timedOut: false });
    expect(await sandbox.outOfMemory()).toBe(true);
    expect((await sh(sandbox, 'echo alive')).stdout).toBe('alive\n');
    await sandbox.destroy();
    expect(await sandbox.outOfMemory()).toBe(true);
  });

  it(
    'sweeps what an owner killed with kill -9 left, and nothing of the living',
    { timeout: 120_000 },
    async () => {
      const owner = new DoomedOwner(`new DockerProvider({ socket: '${daemon.socket}', root: '${root}' })`, 4);
      const mine = await provider.open({ id: 'mine', network: { kind: 'none' } });
      const { folder: doomed } = await owner.alive(root);
      expect(await provider.sweep()).toMatchObject({ swept: 0 });
      await owner.kill();
      expect((await tracesOf(root, [])).filter((trace) => trace.includes(doomed)).length).toBeGreaterThan(1);
      expect(await provider.sweep()).toMatchObject({ swept: 4 });
      expect((await tracesOf(root, [])).filter((trace) => trace.includes(doomed))).toEqual([]);
      const docker = new Docker({ socketPath: daemon.socket });
      const left = await docker.listContainers({
        all: true,
        filters: { label: [`treeward.owner=${doomed}`] },
      });
      expect(left).toEqual([]);
      expect(await provider.sweep()).toMatchObject({ swept: 0 });
      expect((await sh(mine, 'echo still here')).stdout).toBe('still here\n');
      await mine.destroy();
    },
  );

  it('names what is missing: the daemon, the image', async () => {
    const nowhere = new DockerProvider({ socket: join(folder, 'none.sock'), root });
    expect(await nowhere.probe()).toMatchObject({ tier: 'none' });
    await expect(nowhere.open({ id: 'x', network: { kind: 'none' } })).rejects.toMatchObject({
      code: 'SANDBOX_E_TIER',
    });
    const imageless = new DockerProvider({ socket: daemon.socket, root, image: 'treeward/none:1' });
    expect((await imageless.probe()).reasons.join()).toContain('image treeward/none:1 is not there');
  });

  it('runs under gVisor where runsc is installed', { timeout: 120_000 }, async (context) => {
    if (!daemon.gvisor) context.skip('runsc is not installed');
    const inner = new DockerProvider({ socket: daemon.socket, root, runtime: 'runsc' });
    expect(await inner.probe()).toMatchObject({ tier: 'full' });
    const sandbox = await inner.open({
      id: 'gvisor',
      network: { kind: 'none' },
      mounts: [nodeMount().mount],
    });
    const result = await sh(
      sandbox,
      `dmesg 2>/dev/null | head -1; ${nodeMount().argv0} -p 1+1; echo made > made`,
    );
    expect(result.stdout).toContain('2\n');
    expect((await sandbox.changes()).map(({ path }) => path)).toEqual(['made']);
    await inner.close();
    expect(inner.counters()).toMatchObject({ leaked: 0, create_failed: 0 });
  });
});
