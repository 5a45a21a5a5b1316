import { closeSync, mkdirSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { StartRequest } from './agent-provider.js';
import { AgentClient } from './agent-client.js';
import { bwrapCommand, WORKSPACE } from './bwrap-arguments.js';
import { orFailure, settlesWithin, type Running } from './child.js';
import { createCgroup, killCgroup, removeCgroup } from './cgroups.js';
import { overlayChanges } from './changes.js';
import type { Machine } from './machine.js';
import { HOME, removeLease, sandboxDirectory, writeLease } from './owner.js';
import { processStart, uptimeMs } from './processes.js';
import type { Spawner } from './spawner.js';
import { readTrace, TRACE_FILE, tracer } from './trace.js';
import { at, openDirectory } from './tree.js';
import type { Execution, FileChange } from './types.js';

/** After closing the agent's input; a starved machine may need it, an idle one takes 5 ms. */
const CLOSE_PATIENCE_MS = 500;
const KILL_PATIENCE_MS = 10_000;

export interface LaunchRequest extends StartRequest {
  machine: Machine;
  spawner: Spawner;
  /** Path of strace when commands are to be watched. */
  strace: string | null;
}

/** What runs: a process, its agent, and open directories of its mounts. */
export interface Launched {
  client: AgentClient;
  /** An open directory: the workspace as seen inside. */
  merged: number;
  workspace: string;
  home: string;
  modelUrl: string | null;
  changes(): Promise<FileChange[]>;
  executions(): Promise<Execution[]>;
  /** Ends everything inside and removes every trace. False when something stayed for the sweeper. */
  tearDown(): Promise<boolean>;
}

/**
 * Starts one sandbox; on failure nothing of it is left. All mounts are made by treeward-init in a mount namespace of
 * its own (init/launch.c), so the host's mount table never shows them and they end with the process. The supervisor
 * keeps the upper and merged directories open, which works even after everything inside has died.
 */
export async function launch(request: LaunchRequest): Promise<Launched> {
  const { id, folder, machine, signal } = request;
  const directory = sandboxDirectory(folder, id);
  const cgroup = machine.cgroups && { layout: machine.cgroups, name: `${folder.name}.${id}` };
  const open: number[] = [];
  let running: Running | null = null;
  let client: AgentClient | null = null;

  const tearDown = async (): Promise<boolean> => {
    if (running) {
      client?.close();
      if (!(await settlesWithin(running.exited, CLOSE_PATIENCE_MS))) {
        if (cgroup) await killCgroup(cgroup.layout, cgroup.name);
        running.kill();
        if (!(await settlesWithin(running.exited, KILL_PATIENCE_MS))) return false;
      }
    }
    for (const fd of open.splice(0)) closeSync(fd);
    if (cgroup && !(await removeCgroup(cgroup.layout, cgroup.name))) return false;
    try {
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
    const procs = cgroup ? await createCgroup(cgroup.layout, cgroup.name, request.limits) : [];
    signal.throwIfAborted();
    running = await start(request, directory, procs);
    client = new AgentClient(running.input, running.output);
    const pid = running.pid!;
    writeLease(folder, { ...lease, pid, start: processStart(pid) });
    const { port } = await orFailure(client.ready, running.failure, signal);
    for (const name of ['u', 'm', 't']) open.push(openDirectory(join(`/proc/${pid}/root`, directory, name)));
    const [upper, merged, trace] = open as [number, number, number];
    return {
      client,
      merged,
      workspace: WORKSPACE,
      home: HOME,
      modelUrl: modelUrl(port),
      changes: () => overlayChanges({ upper, merged, lower: request.lower.path }),
      executions: () => readTrace(at(trace, Buffer.from(TRACE_FILE))),
      tearDown,
    };
  } catch (error) {
    await tearDown();
    throw error;
  }
}

function start(request: LaunchRequest, directory: string, procs: readonly string[]): Promise<Running> {
  const { machine, folder, spawner } = request;
  const asRoot = machine.mechanism === 'root';
  // As root the sources are bound below the sandbox's own directory first: bwrap runs as the sandbox uid and could
  // not walk to, say, /root/.cache.
  const sources = [
    ...request.mounts.map(({ host }) => host),
    ...request.covers.map(({ host }) => host),
    ...(request.modelDirectory ? [request.modelDirectory] : []),
  ];
  const reachable = (host: string): string =>
    asRoot ? join(directory, 'b', String(sources.indexOf(host))) : host;
  const command = bwrapCommand({
    bwrap: machine.bwrap,
    folder,
    directory,
    limits: request.limits,
    mounts: request.mounts.map(({ host, inside }) => ({ host: reachable(host), inside })),
    covers: request.covers.map(({ host, path }) => ({ host: reachable(host), path })),
    uid: request.uid,
    modelDirectory: request.modelDirectory && reachable(request.modelDirectory),
    rlimits: machine.cgroups === null,
  });
  const binds = asRoot
    ? [...new Set(sources)].flatMap((host) => ['--bind', host, String(sources.indexOf(host))])
    : [];
  return spawner.start(
    [
      ...['launch', '--dir', directory, '--lower', request.lower.path],
      ...['--disk', String(request.limits.disk), '--inodes', '200k'],
      ...(asRoot ? ['--uid', String(request.uid), '--gid', String(request.uid)] : ['--userns']),
      ...procs.flatMap((file) => ['--cgroup', file]),
      ...binds,
      ...['--', ...(request.strace ? tracer(request.strace, directory) : []), ...command],
    ],
    folder.seccomp,
    request.signal,
  );
}

/** The agent reports port 0 when it forwards nothing. */
export const modelUrl = (port: number): string | null => (port ? `http://127.0.0.1:${port}` : null);
