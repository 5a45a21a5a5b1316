import type { Endpoint, HarnessAdapter, HarnessTask, Installed } from '@treeward/harness-adapters';
import type { RunOptions, RunResult, Sandbox } from '@treeward/sandbox';
import type { TaskSession } from './types.js';

export interface SessionsRun {
  adapter: HarnessAdapter;
  installed: Installed;
  sandbox: Pick<Sandbox, 'run' | 'session'>;
  endpoint: Endpoint;
  /** Prepared already; its prompt is that of the first session. */
  task: HarnessTask;
  sessions: readonly TaskSession[];
}

/**
 * The harness once per session, in one sandbox: files and HOME stay. A session goes on with the conversation before it, or
 * begins another one. All share the one time limit.
 */
export async function playSessions(
  { adapter, installed, sandbox, endpoint, task, sessions }: SessionsRun,
  options: Pick<RunOptions, 'signal'> & { timeout: number },
): Promise<RunResult> {
  const started = performance.now();
  const first = adapter.command(sandbox.session(), installed, task, endpoint);
  let total = await sandbox.run(first.argv, { ...first.run, ...options });
  // Harnesses name a conversation after the rollout: another conversation needs another name.
  let conversation = endpoint;
  for (const [index, { prompt, newSession }] of sessions.entries()) {
    if (index === 0) continue;
    if (total.timedOut || options.signal?.aborted) break;
    const timeout = options.timeout - (performance.now() - started);
    if (timeout <= 0) return { ...total, timedOut: true };
    if (newSession) conversation = { ...endpoint, rolloutId: `${endpoint.rolloutId}-${index + 1}` };
    const next: HarnessTask = { ...task, prompt, resume: !newSession };
    await adapter.prepare(sandbox.session(), conversation, next);
    const { argv, run } = adapter.command(sandbox.session(), installed, next, conversation);
    total = joined(total, await sandbox.run(argv, { ...run, ...options, timeout }));
  }
  return total;
}

/** Ended as the last one did; took what all took. */
const joined = (before: RunResult, last: RunResult): RunResult => ({
  ...last,
  stdout: before.stdout + last.stdout,
  stderr: before.stderr + last.stderr,
  truncated: before.truncated || last.truncated,
  cpuSeconds: before.cpuSeconds + last.cpuSeconds,
  wallMs: before.wallMs + last.wallMs,
});
