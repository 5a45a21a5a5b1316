import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { FileChange, Mount, RunResult, SandboxProvider, SandboxSession } from '@treeward/sandbox';
import type { TranscriptAgent } from '@treeward/telemetry';
import { requireInstalled } from '../registry.js';
import type { HarnessAdapter, HarnessTask } from '../types.js';
import type { Script } from './script.js';
import { scriptedServer, type ScriptedCall } from './server.js';

export interface ScriptedRun {
  /** Runs of the CLI, one after the other in one sandbox: more than one where a conversation is resumed. */
  tasks: readonly HarnessTask[];
  script: Script;
  /** The workspace at the start, by path. */
  files?: Readonly<Record<string, string>>;
  mounts?: readonly Mount[];
  /** Before the first run, in the sandbox. */
  before?: (session: SandboxSession) => Promise<void>;
}

export interface ScriptedOutcome {
  version: string;
  runs: RunResult[];
  calls: ScriptedCall[];
  transcript: Map<string, Uint8Array>;
  agents: TranscriptAgent[];
  changes: FileChange[];
  /** The workspace's regular text files that changed, at the end. */
  files: Record<string, string>;
}

const TIMEOUT = 60_000;

/**
 * The real CLI in a real sandbox against a script: no model, no gateway.
 * @throws TreewardError HARNESS_E_MISSING when it is not installed, and what the sandbox throws
 */
export async function runScripted(
  adapter: HarnessAdapter,
  provider: SandboxProvider,
  run: ScriptedRun,
): Promise<ScriptedOutcome> {
  await adapter.warm?.(provider);
  const installed = await requireInstalled(adapter);
  const from = mkdtempSync(join(tmpdir(), 'task-'));
  for (const [path, content] of Object.entries(run.files ?? {})) {
    mkdirSync(dirname(join(from, path)), { recursive: true });
    writeFileSync(join(from, path), content);
  }
  const server = await scriptedServer(adapter, run.script);
  try {
    const sandbox = await provider.open({
      id: `scripted-${adapter.name}-${process.pid}-${Date.now()}`,
      workspaceFrom: from,
      network: { kind: 'model-socket', directory: server.directory },
      mounts: [...installed.mounts, ...(run.mounts ?? [])],
      limits: adapter.limits,
    });
    try {
      const session = sandbox.session();
      const endpoint = { baseUrl: sandbox.modelUrl ?? '', key: 'key-of-this-rollout', rolloutId: 'run/0/3' };
      await run.before?.(session);
      const runs: RunResult[] = [];
      let transcript = new Map<string, Uint8Array>();
      for (const task of run.tasks) {
        await adapter.prepare(session, endpoint, task);
        const { argv, run: options } = adapter.command(session, installed, task, endpoint);
        runs.push(await sandbox.run(argv, { ...options, timeout: TIMEOUT }));
        transcript = await adapter.readTranscript(session, task, endpoint);
      }
      const changes = await sandbox.changes();
      const files: Record<string, string> = {};
      for (const { path, kind, sha256 } of changes) {
        if ((kind === 'create' || kind === 'modify') && sha256 !== undefined) {
          files[path] = Buffer.from(await session.read(`${session.workspace}/${path}`)).toString();
        }
      }
      const agents = adapter.parseTranscript?.(transcript) ?? [];
      return { version: installed.version, runs, calls: server.calls, transcript, agents, changes, files };
    } finally {
      await sandbox.destroy();
    }
  } finally {
    await server.close();
    rmSync(from, { recursive: true, force: true });
  }
}
