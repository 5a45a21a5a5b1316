import { describe, expect, it } from 'vitest';
import { registerAdapter, type HarnessAdapter, type HarnessTask } from '@treeward/harness-adapters';
import type { RolloutDeps } from '@treeward/rollout';
import type { RunOptions, RunResult, Sandbox, SandboxProvider } from '@treeward/sandbox';
import { Sessions } from './sessions.js';

const tools = { tool: 'x', arguments: [] };
const fake: HarnessAdapter = {
  name: 'eval-sessions-fake',
  pin: '1',
  dialect: 'openai-chat',
  tools: { read: tools, write: tools, edit: tools, exec: tools },
  limits: {},
  detect: async () => ({ version: '1', mounts: [], entry: '/fake' }),
  prepare: async () => {},
  command: (_, installed, task: HarnessTask, endpoint) => ({
    argv: [
      installed.entry,
      task.resume ? 'resume' : 'new',
      task.prompt,
      endpoint.rolloutId,
      endpoint.key,
      endpoint.baseUrl,
    ],
    run: { env: { SESSION: task.prompt } },
  }),
  readTranscript: async () => new Map(),
  canonicalise: (messages) => [...messages],
};
registerAdapter(fake);

const sessions = [
  { id: 'a', prompt: 'one', newSession: false },
  { id: 'b', prompt: 'two', newSession: false },
  { id: 'c', prompt: 'three', newSession: true },
];

/** Runs what the wrapped provider opens, the way runRollout does. `tick`: what the clock gains by each run. */
async function play(options: { timeout: number; takes?: number; timedOutAt?: number; id?: string }) {
  const runs: { argv: readonly string[]; options: RunOptions | undefined }[] = [];
  const result = (timedOut: boolean): RunResult => ({
    code: 0,
    signal: null,
    stdout: 'o',
    stderr: '',
    timedOut,
    truncated: false,
    cpuSeconds: 1,
    wallMs: 5,
  });
  const opened: string[] = [];
  const sandbox = {
    modelUrl: 'http://inside',
    workspace: '/workspace',
    session: () => sandbox,
    run: async (argv: readonly string[], runOptions?: RunOptions) => {
      if (options.takes) await new Promise((resolve) => setTimeout(resolve, options.takes));
      runs.push({ argv, options: runOptions });
      return result(runs.length === options.timedOutAt);
    },
  } as unknown as Sandbox;
  const wrapper = new Sessions();
  wrapper.plan('r1', { harness: fake.name, sessions, maxTurns: 9 });
  const deps = wrapper.wrap({
    gateway: { open: async () => ({ key: 'k' }) },
    sandboxes: {
      open: async ({ id }: { id: string }) => (opened.push(id), sandbox),
    } as unknown as SandboxProvider,
  } as unknown as RolloutDeps);
  const id = options.id ?? 'r1';
  await deps.gateway.open({ rolloutId: id } as never);
  const inside = await deps.sandboxes.open({ id, network: { kind: 'none' } });
  await inside.run(['look']);
  const total = await inside.run(['/fake', 'new', 'one'], {
    timeout: options.timeout,
    env: { SESSION: 'one' },
  });
  return { runs: runs.slice(1), total, opened };
}

describe('sessions (complaints #56 #329: `sessions` and `new_session` ignored)', () => {
  it('go on with the conversation, or begin another one under another name, in one sandbox', async () => {
    const { runs, total, opened } = await play({ timeout: 10_000 });
    expect(opened).toEqual(['r1']);
    expect(runs.map(({ argv }) => argv)).toEqual([
      ['/fake', 'new', 'one'],
      ['/fake', 'resume', 'two', 'r1', 'k', 'http://inside'],
      ['/fake', 'new', 'three', 'r1-3', 'k', 'http://inside'],
    ]);
    expect(runs.map(({ options }) => options?.env?.['SESSION'])).toEqual(['one', 'two', 'three']);
    expect(total).toMatchObject({ stdout: 'ooo', cpuSeconds: 3, wallMs: 15, timedOut: false });
  });

  it('share one time limit: what a session took is not there for the next', async () => {
    const { runs } = await play({ timeout: 10_000, takes: 30 });
    const left = runs.map(({ options }) => options!.timeout!);
    expect(left[0]).toBe(10_000);
    expect(left[1]!).toBeLessThan(left[0]!);
    expect(left[2]!).toBeLessThan(left[1]!);
  });

  it('end when one runs out of time', async () => {
    const { runs, total } = await play({ timeout: 10_000, timedOutAt: 3 });
    expect(runs).toHaveLength(2);
    expect(total.timedOut).toBe(true);
    const spent = await play({ timeout: 10, takes: 30 });
    expect(spent.runs).toHaveLength(1);
    expect(spent.total.timedOut).toBe(true);
  });

  it('a rollout without a plan is not touched', async () => {
    expect((await play({ timeout: 10_000, id: 'r2' })).runs).toHaveLength(1);
  });
});
