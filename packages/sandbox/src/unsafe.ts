import { spawn } from 'node:child_process';
import { closeSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import { AgentClient } from './agent-client.js';
import { plainChanges } from './changes.js';
import { orFailure, settlesWithin, watch, type Running } from './child.js';
import type { StartRequest } from './agent-provider.js';
import { modelUrl, type Launched } from './launch.js';
import { removeLease, sandboxDirectory, writeLease } from './owner.js';
import { processStart, uptimeMs } from './processes.js';
import { removeTree } from './remove-tree.js';
import { copyTree, inDirectory, openDirectory } from './tree.js';

/**
 * Tier none, only on explicit demand: the same agent as a plain process of the caller's uid in a plain directory. It
 * sees the whole host and its network, and nothing limits it but time-outs. Paths inside are host paths.
 * @throws TreewardError SANDBOX_E_TIER for a mount that would have to appear elsewhere than it is
 */
export async function launchUnsafe(request: StartRequest): Promise<Launched> {
  const { id, folder, lower, signal } = request;
  const misplaced = request.mounts.find(({ host, inside }) => host !== inside);
  if (misplaced) {
    throw new TreewardError(
      'SANDBOX_E_TIER',
      `without namespaces ${misplaced.host} cannot be shown as ${misplaced.inside}`,
      { hints: ['give it the same path inside as outside'] },
    );
  }
  const directory = sandboxDirectory(folder, id);
  const [workspace, home] = [join(directory, 'workspace'), join(directory, 'home')];
  let running: Running | null = null;
  let client: AgentClient | null = null;
  let merged = -1;

  const tearDown = async (): Promise<boolean> => {
    client?.close(); // the agent kills its descendants before it goes
    if (running?.pid !== undefined && !(await settlesWithin(running.exited, 5000))) {
      running.kill();
      if (!(await settlesWithin(running.exited, 5000))) return false;
    }
    if (merged >= 0) closeSync(merged);
    merged = -1;
    await removeTree(directory);
    removeLease(folder, id);
    return true;
  };

  try {
    const lease = { id, created: new Date().toISOString(), expires: uptimeMs() + request.ttl };
    writeLease(folder, { ...lease, pid: null, start: null });
    for (const path of [directory, workspace, home]) mkdirSync(path, { mode: 0o700 });
    const maxBytes = Number.MAX_SAFE_INTEGER;
    await inDirectory(Buffer.from(lower.path), (fd) =>
      copyTree(fd, workspace, { maxBytes, special: 'refuse' }),
    );
    for (const { host, path } of request.covers) {
      await inDirectory(Buffer.from(host), (fd) =>
        copyTree(fd, join(workspace, path), { maxBytes, special: 'refuse' }),
      );
    }
    signal.throwIfAborted();
    const model = request.modelDirectory
      ? ['--port', '0', '--model', join(request.modelDirectory, 'model.sock')]
      : [];
    running = watch(
      spawn(folder.agent, ['agent', ...model], { cwd: workspace, env: {}, detached: true, stdio: 'pipe' }),
    );
    client = new AgentClient(running.input, running.output);
    const { pid } = running;
    if (pid !== undefined) writeLease(folder, { ...lease, pid, start: processStart(pid) });
    const { port } = await orFailure(client.ready, running.failure, signal);
    merged = openDirectory(workspace);
    return {
      client,
      merged,
      workspace,
      home,
      modelUrl: modelUrl(port),
      changes: () => plainChanges(merged, lower.path),
      executions: () => Promise.resolve([]),
      tearDown,
    };
  } catch (error) {
    await tearDown();
    throw error;
  }
}
