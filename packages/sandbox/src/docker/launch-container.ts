import { closeSync, mkdirSync, readFileSync } from 'node:fs';
import { readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, type Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { AgentClient } from '../agent-client.js';
import { WORKSPACE } from '../bwrap-arguments.js';
import { findCgroups } from '../cgroups.js';
import { overlayChanges } from '../changes.js';
import { orFailure } from '../child.js';
import { modelUrl, type Launched } from '../launch.js';
import { mountWorkspace, unmount } from '../mounts.js';
import { HOME, removeLease, sandboxDirectory, writeLease } from '../owner.js';
import { processStart, uptimeMs } from '../processes.js';
import { openDirectory } from '../tree.js';
import { containerOptions, type ContainerRequest } from './container-options.js';

export interface LaunchedContainer extends Launched {
  /** How often the memory limit killed something. */
  oomKills(): Promise<number>;
}

/**
 * Starts one container; on failure nothing of it is left. Its workspace is an overlay on the host, since the daemon can
 * bind only what the host shows; the sweeper finds it below its lease.
 */
export async function launchContainer(docker: Docker, request: ContainerRequest): Promise<LaunchedContainer> {
  const { id, folder, signal } = request;
  const directory = sandboxDirectory(folder, id);
  const merged = join(directory, 'm');
  const open: number[] = [];
  let container: Docker.Container | null = null;
  let client: AgentClient | null = null;
  let mounted = false;

  const tearDown = async (): Promise<boolean> => {
    client?.close();
    if (container && !(await removed(container))) return false;
    for (const fd of open.splice(0)) closeSync(fd);
    try {
      if (mounted) await unmount([merged, directory]);
      await rmdir(directory);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return false;
    }
    removeLease(folder, id);
    return true;
  };

  try {
    const lease = { id, created: new Date().toISOString(), expires: uptimeMs() + request.ttl };
    writeLease(folder, { ...lease, pid: null, start: null });
    mkdirSync(directory, { mode: 0o711 });
    mounted = true;
    await mountWorkspace(directory, {
      lower: request.lower.path,
      disk: request.limits.disk,
      uid: request.uid,
    });
    for (const name of ['u', 'm']) open.push(openDirectory(join(directory, name)));
    const [upper, workspace] = open as [number, number];
    signal.throwIfAborted();
    container = await docker.createContainer(containerOptions(request, merged));
    const running = container;
    const streams = (await running.attach({
      ...{ stream: true, hijack: true, stdin: true, stdout: true, stderr: true },
    })) as unknown as Duplex;
    const { output, failure } = demultiplexed(docker, running, streams);
    client = new AgentClient(streams, output);
    signal.throwIfAborted();
    await running.start();
    const { State } = await running.inspect();
    if (State.Pid) writeLease(folder, { ...lease, pid: State.Pid, start: processStart(State.Pid) });
    const oomFile = oomFileOf(State.Pid);
    const { port } = await orFailure(client.ready, failure, signal);
    return {
      client,
      merged: workspace,
      workspace: WORKSPACE,
      home: HOME,
      modelUrl: modelUrl(port),
      changes: () => overlayChanges({ upper, merged: workspace, lower: request.lower.path }),
      executions: () => Promise.resolve([]),
      tearDown,
      oomKills: () => oomKills(oomFile, running),
    };
  } catch (error) {
    await tearDown();
    throw error;
  }
}

/** One stream of the daemon's carries both of the container's; the second has its last words. */
function demultiplexed(docker: Docker, container: Docker.Container, streams: Duplex) {
  const output = new PassThrough();
  const errors = new PassThrough();
  let stderr = '';
  errors.setEncoding('utf8').on('data', (text: string) => {
    if (stderr.length < 64 * 1024) stderr += text;
  });
  (docker.modem as { demuxStream(from: Duplex, out: PassThrough, err: PassThrough): void }).demuxStream(
    streams,
    output,
    errors,
  );
  const failure = new Promise<never>((_, reject) => {
    const ended = async (): Promise<void> => {
      output.end();
      const state = await container.inspect().then(
        ({ State }) => `exit ${State.ExitCode}${State.OOMKilled ? ', out of memory' : ''} ${State.Error}`,
        () => 'removed',
      );
      reject(new Error(`${stderr.trim() || 'no message'} (${state.trim()})`));
    };
    streams.once('close', () => void ended()).on('error', () => undefined);
  });
  failure.catch(() => undefined);
  return { output, failure };
}

async function removed(container: Docker.Container): Promise<boolean> {
  try {
    await container.remove({ force: true, v: true });
    return true;
  } catch (error) {
    const { statusCode } = error as { statusCode?: number };
    if (statusCode === 404) return true;
    if (statusCode !== 409) return false; // 409: somebody else is removing it already
    await container.wait({ condition: 'removed' }).catch(() => undefined);
    return true;
  }
}

/** The counter of the container's own memory cgroup, found by its first process. Null where the host does not show it. */
function oomFileOf(pid: number): string | null {
  const found = findCgroups();
  if (!pid || !('layout' in found)) return null;
  try {
    const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
    const { layout } = found;
    const path = (layout.version === 1 ? /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m : /^0::(.*)$/m).exec(
      groups,
    )?.[1];
    if (path === undefined) return null;
    return layout.version === 1
      ? join(layout.roots.memory, path, 'memory.oom_control')
      : join(layout.root, path, 'memory.events');
  } catch {
    return null; // gone already
  }
}

async function oomKills(file: string | null, container: Docker.Container): Promise<number> {
  const text = file === null ? '' : await readFile(file, 'utf8').catch(() => '');
  const counted = /^oom_kill (\d+)$/m.exec(text)?.[1];
  if (counted !== undefined) return Number(counted);
  // The group goes with the container's last process; the daemon remembers.
  const inspected = await container.inspect().catch(() => null);
  return inspected?.State.OOMKilled ? 1 : 0;
}
