import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readJson, toPlainError, TreewardError, writeJsonAtomic, type RolloutFolder } from '@treeward/base';
import type { EndpointSummary, GatewayControl } from '@treeward/gateway';
import {
  adapterByName,
  requireInstalled,
  type Endpoint,
  type HarnessAdapter,
  type HarnessTask,
} from '@treeward/harness-adapters';
import type { RunResult, Sandbox, SandboxProvider } from '@treeward/sandbox';
import { appendEvents, type RecordEvent } from '@treeward/telemetry';
import { lastConversation } from './conversation.js';
import { FAULTS, faultOf } from './faults.js';
import {
  assertModelWasThere,
  blameMemory,
  collectWorkspace,
  exceededLimit,
  MAX_CALLS_PER_TURN,
} from './own-limits.js';
import { rewardPayload } from './payload.js';
import { playSessions } from './sessions.js';
import { settle } from './settle.js';
import { loadTask } from './task.js';
import type { Grader, ModelHealth, RolloutResult, RolloutSpec, Task } from './types.js';
import { toolExec, WorkspaceWitness } from './witness.js';
import { StateGrader, WorkspaceStates } from './workspace-states.js';

export interface RolloutDeps {
  gateway: GatewayControl;
  sandboxes: SandboxProvider;
  grader: Grader;
  /** Judges what calls found, where a rollout asks for it; one for all lets rollouts share grades. @default its own, by `grader` */
  states?: StateGrader;
  /** Holds one socket directory per rollout; short, because unix socket paths end at 107 bytes. */
  socketRoot: string;
  folder(rolloutId: string): RolloutFolder;
  /** Record every command that runs inside (strace). @default false */
  trace?: boolean;
  /** Tells apart who ran out of time and who was kept waiting; ends everything when it is lost. @default always well */
  model?: ModelHealth;
}

/**
 * One rollout: task × harness × policy → record + reward. Idempotent by id: a rollout whose `result.json` exists is read,
 * not run again; a half-written one is removed first. Never throws for what happens inside a rollout: the fault's kind says
 * whose doing it was.
 */
export async function runRollout(
  spec: RolloutSpec,
  deps: RolloutDeps,
  signal?: AbortSignal,
): Promise<RolloutResult> {
  const folder = deps.folder(spec.rolloutId);
  if (existsSync(folder.result)) return readJson<RolloutResult>(folder.result);
  rmSync(folder.root, { recursive: true, force: true });

  const result = blankResult(spec);
  const started = performance.now();
  try {
    signal?.throwIfAborted();
    const task = loadTask(spec.task);
    const adapter = adapterByName(spec.harness);
    mkdirSync(folder.root, { recursive: true });
    await attempt({ spec, deps, folder, result, task, adapter, ...(signal ? { signal } : {}) });
  } catch (error) {
    result.fault = faultOf(error, signal);
    result.reward = FAULTS[result.fault.kind].then === 'own' ? 0 : null;
  }
  result.time.total = Math.round(performance.now() - started);
  // The only atomic write: a rollout without its result is done again, so with it all else is whole.
  if (existsSync(folder.root)) writeJsonAtomic(folder.result, result);
  return result;
}

interface Attempt {
  spec: RolloutSpec;
  deps: RolloutDeps;
  folder: RolloutFolder;
  result: RolloutResult;
  task: Task;
  adapter: HarnessAdapter;
  signal?: AbortSignal;
}

async function attempt({ spec, deps, folder, result, task, adapter, signal }: Attempt): Promise<void> {
  await adapter.warm?.(deps.sandboxes);
  const installed = await requireInstalled(adapter);
  result.harnessVersion = installed.version;
  const socketDirectory = join(deps.socketRoot, spec.rolloutId);
  const workspaceCopy = join(folder.root, 'workspace');
  const statesCopy = join(folder.root, 'states');
  let sandbox: Sandbox | null = null;
  let status: 'completed' | 'failed' = 'failed';
  let clock = performance.now(); // not the date, which may jump
  const lap = (): number => {
    const now = performance.now();
    const ms = Math.round(now - clock);
    clock = now;
    return ms;
  };

  const awayBefore = deps.model?.awayMs() ?? 0;
  mkdirSync(socketDirectory, { recursive: true, mode: 0o755 });
  const { key } = await deps.gateway.open({
    rolloutId: spec.rolloutId,
    socketDirectory,
    recordDirectory: folder.root,
    harness: adapter.name,
    labels: {
      ...spec.labels,
      task: task.id,
      harness: adapter.name,
      harnessVersion: installed.version,
      group: spec.group,
    },
    seed: spec.seed,
    sampling: spec.sampling,
    samplingFrom: spec.samplingFrom ?? 'config',
    witnessArrivals: true,
    budget: { maxCalls: spec.limits.maxTurns * MAX_CALLS_PER_TURN, maxTokens: spec.limits.maxTokens },
  });
  try {
    sandbox = await deps.sandboxes.open({
      id: spec.rolloutId,
      ...(task.inputFiles ? { workspaceFrom: task.inputFiles } : {}),
      network: { kind: 'model-socket', directory: socketDirectory },
      mounts: [...installed.mounts, ...(task.mcp ? [task.mcp.mount] : [])],
      limits: adapter.limits,
      ...(deps.trace && { trace: true }),
      ...(signal ? { signal } : {}),
    });
    const { tier, image } = sandbox;
    result.sandbox = { provider: deps.sandboxes.name, tier, image };
    const endpoint: Endpoint = { baseUrl: sandbox.modelUrl ?? '', key, rolloutId: spec.rolloutId };
    const harnessTask: HarnessTask = {
      prompt: task.query,
      maxTurns: spec.limits.maxTurns,
      ...(task.mcp && { mcpServers: task.mcp.servers }),
      ...(spec.thinking && { thinking: spec.thinking }),
    };
    await adapter.prepare(sandbox.session(), endpoint, harnessTask);
    const states = spec.gradeStates ? new WorkspaceStates(sandbox, statesCopy) : null;
    const witness = new WorkspaceWitness(deps.gateway, spec.rolloutId, sandbox, states);
    witness.watch();
    result.time.start = lap();

    const inside = sandbox;
    const run = await playSessions(
      { adapter, installed, sandbox, endpoint, task: harnessTask, sessions: task.sessions },
      {
        timeout: spec.limits.wallMs,
        signal: AbortSignal.any([witness.lost, ...(signal ? [signal] : [])]),
      },
    ).catch((error: unknown) =>
      blameMemory(error, inside, async () => (await deps.gateway.status(spec.rolloutId)).calls),
    );
    result.time.harness = lap();
    recordExit(result, run);
    signal?.throwIfAborted();
    if (run.timedOut && deps.model)
      await assertModelWasThere(
        deps.model,
        awayBefore,
        async () => (await deps.gateway.status(spec.rolloutId)).pending,
      );

    await settle(deps.gateway, spec.rolloutId);
    const summary = await deps.gateway.close(spec.rolloutId);
    recordCalls(result, summary);
    result.time.settle = lap();
    await append(folder, {
      type: 'process.exit',
      time: Date.now(),
      code: run.code,
      signal: run.signal,
      timedOut: run.timedOut,
    });
    const { all, event } = await witness.last();
    writeFileSync(folder.workspaceDiff, all.map((change) => JSON.stringify(change) + '\n').join(''));
    await append(
      folder,
      event,
      ...(await sandbox.executions()).map(toolExec),
      ...(await keepTranscript(folder, sandbox, adapter, harnessTask, endpoint)),
    );
    const outOfMemory = await sandbox.outOfMemory();
    assertUsable(summary, run, outOfMemory);

    const collected = await collectWorkspace(sandbox, workspaceCopy);
    await sandbox.destroy();
    const grade: Awaited<ReturnType<Grader['grade']>> =
      'fault' in collected
        ? { reward: 0, scores: {}, cpuSeconds: 0, fault: collected.fault }
        : await deps.grader.grade(task, workspaceCopy, rewardPayload(task, lastConversation(folder.root)), {
            id: spec.rolloutId,
            ...(signal ? { signal } : {}),
          });
    result.reward = grade.reward;
    result.scores = grade.scores;
    result.cpuSeconds.verifier = grade.cpuSeconds;
    result.time.verify = lap();
    result.fault = grade.fault ?? exceededLimit(spec, run, summary, outOfMemory);
    await append(folder, {
      type: 'verifier',
      time: Date.now(),
      reward: grade.reward,
      scores: grade.scores,
    });
    if (states) {
      const by = deps.states ?? new StateGrader(deps.grader);
      result.states = await by.grade(task, states, folder.root, {
        id: spec.rolloutId,
        ...(signal ? { signal } : {}),
      });
    }
    status = 'completed';
  } catch (error) {
    const { code, message } = toPlainError(error);
    if (code.startsWith('VERIFIER_E')) {
      await append(folder, {
        type: 'verifier',
        time: Date.now(),
        reward: null,
        scores: {},
        error: { code, message },
      });
    }
    throw error;
  } finally {
    await deps.gateway.close(spec.rolloutId).catch(() => undefined); // a dead gateway has nothing left to close
    await sandbox?.destroy();
    rmSync(workspaceCopy, { recursive: true, force: true });
    rmSync(statesCopy, { recursive: true, force: true });
    rmSync(socketDirectory, { recursive: true, force: true });
    await append(folder, {
      type: 'rollout.end',
      time: Date.now(),
      status: signal?.aborted ? 'cancelled' : status,
    });
  }
}

function blankResult(spec: RolloutSpec): RolloutResult {
  return {
    rolloutId: spec.rolloutId,
    task: spec.task,
    harness: spec.harness,
    harnessVersion: '',
    group: spec.group,
    reward: null,
    scores: {},
    fault: null,
    exitCode: null,
    timedOut: false,
    calls: 0,
    promptTokens: 0,
    sampledTokens: 0,
    malformed: 0,
    time: { total: 0, start: 0, harness: 0, settle: 0, verify: 0 },
    cpuSeconds: { harness: 0, verifier: 0 },
  };
}

function recordExit(result: RolloutResult, run: RunResult): void {
  result.exitCode = run.code;
  result.timedOut = run.timedOut;
  result.cpuSeconds.harness = run.cpuSeconds;
}

function recordCalls(result: RolloutResult, summary: EndpointSummary): void {
  result.calls = summary.calls;
  result.promptTokens = summary.promptTokens;
  result.sampledTokens = summary.sampledTokens;
  result.malformed = summary.malformed;
}

/** An exit code of 0 is not success and another is not failure: only the verifier decides, if there is work to judge. */
function assertUsable(summary: EndpointSummary, run: RunResult, outOfMemory: boolean): void {
  if (summary.engineFailure) throw new TreewardError('ENGINE_E_FAILED', summary.engineFailure);
  if (summary.calls === 0) {
    throw new TreewardError(
      'HARNESS_E_NO_CALL',
      `the harness ended (code ${run.code ?? run.signal}) without calling the model: ${run.stderr.trim().slice(-400)}`,
      {
        data: { stderr: run.stderr.slice(-2000), stdout: run.stdout.slice(-2000), outOfMemory },
        hints: ['run the same rollout by `treeward rollout` and read its transcript folder'],
      },
    );
  }
}

async function keepTranscript(
  folder: RolloutFolder,
  sandbox: Sandbox,
  adapter: HarnessAdapter,
  task: HarnessTask,
  endpoint: Endpoint,
): Promise<RecordEvent[]> {
  const files = await adapter.readTranscript(sandbox.session(), task, endpoint);
  for (const [name, bytes] of files) {
    const file = join(folder.transcript, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, bytes);
  }
  const agents = adapter.parseTranscript?.(files) ?? [];
  return agents.length ? [{ type: 'transcript', time: Date.now(), agents }] : [];
}

async function append(folder: RolloutFolder, ...events: readonly RecordEvent[]): Promise<void> {
  if (!existsSync(folder.telemetry)) return; // the gateway never opened the record
  await appendEvents(folder.root, events);
}
