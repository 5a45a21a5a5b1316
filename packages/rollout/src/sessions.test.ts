import { describe, expect, it } from 'vitest';
import type { HarnessAdapter } from '@treeward/harness-adapters';
import type { RunOptions, RunResult } from '@treeward/sandbox';
import { playSessions, type SessionsRun } from './sessions.js';

interface Played {
  runs: { argv: readonly string[]; options: RunOptions }[];
  prepared: string[];
  total: RunResult;
}

/** `takes`: milliseconds of each run. */
async function play(timeout: number, { takes = 0, timedOutAt = 0 } = {}): Promise<Played> {
  const runs: Played['runs'] = [];
  const prepared: string[] = [];
  const adapter = {
    prepare: async (_: unknown, { rolloutId }: { rolloutId: string }) => void prepared.push(rolloutId),
    command: (_: unknown, __: unknown, task: SessionsRun['task'], { rolloutId }: { rolloutId: string }) => ({
      argv: [task.resume ? 'resume' : 'new', task.prompt, rolloutId],
      run: { stdin: task.prompt },
    }),
  } as unknown as HarnessAdapter;
  const run = async (argv: readonly string[], options: RunOptions): Promise<RunResult> => {
    runs.push({ argv, options });
    await new Promise((resolve) => setTimeout(resolve, takes));
    const ends = { code: runs.length, signal: null, timedOut: runs.length === timedOutAt, truncated: false };
    return { ...ends, stdout: 'o', stderr: 'e', cpuSeconds: 1, wallMs: 5 };
  };
  const total = await playSessions(
    {
      adapter,
      installed: { version: '1', mounts: [], entry: '/x' },
      sandbox: { run, session: () => ({}) } as unknown as SessionsRun['sandbox'],
      endpoint: { baseUrl: '', key: 'k', rolloutId: 'r' },
      task: { prompt: 'one', maxTurns: 9 },
      sessions: [
        { prompt: 'one', newSession: false },
        { prompt: 'two', newSession: false },
        { prompt: 'three', newSession: true },
        { prompt: 'four', newSession: false },
      ],
    },
    { timeout },
  );
  return { runs, prepared, total };
}

describe('sessions', () => {
  it('go on with the conversation, or begin another one under another name', async () => {
    const { runs, prepared, total } = await play(10_000);
    expect(runs.map(({ argv }) => argv.join(' '))).toEqual([
      'new one r',
      'resume two r',
      'new three r-3',
      'resume four r-3',
    ]);
    expect(runs.map(({ options }) => options.stdin)).toEqual(['one', 'two', 'three', 'four']);
    expect(prepared).toEqual(['r', 'r-3', 'r-3']); // the first is prepared by who calls
    expect(total).toMatchObject({ code: 4, stdout: 'oooo', stderr: 'eeee', cpuSeconds: 4, wallMs: 20 });
  });

  it('share one time limit', async () => {
    const { runs } = await play(10_000, { takes: 20 });
    const left = runs.map(({ options }) => options.timeout!);
    expect(left[0]).toBe(10_000);
    for (const index of [1, 2, 3]) expect(left[index]!).toBeLessThan(left[index - 1]!);
    const spent = await play(10, { takes: 30 });
    expect(spent.runs).toHaveLength(1);
    expect(spent.total.timedOut).toBe(true);
  });

  it('end with the one that ran out of time', async () => {
    const { runs, total } = await play(10_000, { timedOutAt: 2 });
    expect(runs).toHaveLength(2);
    expect(total.timedOut).toBe(true);
  });
});
