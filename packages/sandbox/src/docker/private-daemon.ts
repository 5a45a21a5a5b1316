import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { dockerClient } from './client.js';

export interface Daemon {
  socket: string;
  /** Whether gVisor is installed; its runtime is then named `runsc`. */
  gvisor: boolean;
  /** Ends it and removes everything of it. */
  stop(): Promise<void>;
}

const here = (command: string): boolean => spawnSync('which', [command]).status === 0;

/** Why no daemon can be had here; null when one can. */
export function daemonUnavailable(): string | null {
  if (process.getuid?.() !== 0) return 'not root';
  for (const [command, name] of Object.entries({ dockerd: 'docker.io', mmdebstrap: 'mmdebstrap' })) {
    if (!here(command)) return `${command} is not installed: apt-get install --no-install-recommends ${name}`;
  }
  return null;
}

/**
 * A Docker daemon of its own in a temporary folder, without effect on the host's network: for tests and benches.
 * @throws Error with the daemon's last words when it does not start
 */
export async function startDaemon(): Promise<Daemon> {
  const folder = mkdtempSync(join(tmpdir(), 'tw-dockerd-'));
  const [socket, log, pidfile] = [join(folder, 'docker.sock'), join(folder, 'log'), join(folder, 'pid')];
  const gvisor = here('runsc');
  const runtimes = gvisor
    ? { runsc: { path: 'runsc', runtimeArgs: ['--network=none', '--fsgofer-host-uds'] } }
    : {};
  writeFileSync(join(folder, 'daemon.json'), JSON.stringify({ runtimes }));
  const daemon = spawn(
    '/bin/sh',
    [
      ...['-c', `exec dockerd "$@" >${log} 2>&1`, 'dockerd'],
      ...['--config-file', join(folder, 'daemon.json'), '--host', `unix://${socket}`, '--pidfile', pidfile],
      ...['--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec')],
      ...['--iptables=false', '--bridge=none', '--ip-forward=false'],
    ],
    { stdio: 'ignore', detached: true },
  );
  const stop = async (): Promise<void> => {
    if (daemon.exitCode === null && daemon.signalCode === null) {
      const ended = once(daemon, 'exit');
      daemon.kill('SIGTERM');
      if (!(await Promise.race([ended.then(() => true), delay(20_000, false, { ref: false })])))
        daemon.kill('SIGKILL');
    }
    spawnSync('umount', ['-l', ...mountedBelow(folder)]);
    rmSync(folder, { recursive: true, force: true });
  };
  const docker = dockerClient(socket);
  for (let tries = 0; tries < 300; tries++) {
    if (daemon.exitCode !== null) break;
    if (existsSync(socket) && (await docker.ping().then(Boolean, () => false)))
      return { socket, gvisor, stop };
    await delay(100);
  }
  const said = readFileSync(log, 'utf8').split('\n').slice(-5).join('\n');
  await stop();
  throw new Error(`dockerd did not start: ${said}`);
}

/** Deepest first. */
const mountedBelow = (folder: string): string[] =>
  readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((point) => point.startsWith(`${folder}/`))
    .reverse();
