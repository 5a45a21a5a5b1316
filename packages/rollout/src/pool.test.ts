import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RolloutFolder, TreewardError } from '@treeward/base';
import { RolloutPool } from './pool.js';
import type { RolloutDeps } from './run-rollout.js';
import type { RolloutSpec } from './types.js';
import { writeFakeTask } from './testing/fake-task.js';

const spec = (rolloutId: string, task: string, harness = 'agent-loop'): RolloutSpec => ({
  rolloutId,
  task,
  harness,
  group: 'g',
  seed: '0',
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 10 },
  limits: { wallMs: 1000, maxTurns: 3, maxTokens: 100 },
  labels: {},
});

/** A machine on which opening an endpoint always fails, in a way the test chooses. */
function brokenMachine(code: string): { deps: RolloutDeps; opened: string[] } {
  const root = mkdtempSync(join(tmpdir(), 'pool-'));
  const opened: string[] = [];
  const refuse = (): never => {
    throw new Error('not reached');
  };
  const deps: RolloutDeps = {
    gateway: {
      open: (options) => {
        opened.push(options.rolloutId);
        return Promise.reject(new TreewardError(code, 'as the test wants it'));
      },
      status: refuse,
      arrival: refuse,
      witness: refuse,
      close: () => Promise.reject(new Error('nothing to close')),
    },
    sandboxes: { name: 'none', probe: refuse, open: refuse, sweep: refuse },
    grader: { grade: refuse },
    socketRoot: join(root, 's'),
    folder: (id) => new RolloutFolder(join(root, 'rollouts', id)),
  };
  return { deps, opened };
}

describe('RolloutPool', () => {
  it('tries an infrastructure failure again, then leaves the rollout without a reward', async () => {
    const { deps, opened } = brokenMachine('GATEWAY_E_CLOSED');
    const done: string[] = [];
    const results = await new RolloutPool(deps, { retries: 2 }).run([spec('a', writeFakeTask())], (result) =>
      done.push(result.rolloutId),
    );
    expect(opened).toEqual(['a', 'a', 'a']);
    expect(done).toEqual(['a']);
    expect(results[0]).toMatchObject({ reward: null, fault: { kind: 'gateway', code: 'GATEWAY_E_CLOSED' } });
  });

  it('does not repeat what is not the machinery’s fault', async () => {
    const { deps, opened } = brokenMachine('GATEWAY_E_CLOSED');
    const results = await new RolloutPool(deps).run([spec('a', '/nowhere')], () => undefined);
    expect(opened).toEqual([]);
    expect(results[0]).toMatchObject({ reward: null, fault: { kind: 'task', code: 'TASK_E_MISSING' } });
  });

  it('names an unknown harness', async () => {
    const { deps } = brokenMachine('GATEWAY_E_CLOSED');
    const results = await new RolloutPool(deps).run([spec('a', writeFakeTask(), 'no-such')], () => undefined);
    expect(results[0]?.fault).toMatchObject({ kind: 'harness', code: 'HARNESS_E_UNKNOWN' });
  });

  it('keeps the order of the specs and every one of them', async () => {
    const { deps } = brokenMachine('GATEWAY_E_CLOSED');
    const task = writeFakeTask();
    const ids = Array.from({ length: 20 }, (_, k) => `r${k}`);
    const pool = new RolloutPool(deps, { concurrency: 3, retries: 0 });
    const results = await pool.run(
      ids.map((id) => spec(id, task)),
      () => undefined,
    );
    expect(results.map((result) => result.rolloutId)).toEqual(ids);
    expect(pool.most).toBe(3);
  });

  it('starts nothing more when the model is lost, and says why', async () => {
    const { deps, opened } = brokenMachine('GATEWAY_E_CLOSED');
    const gone = new AbortController();
    const model = { lost: gone.signal, awayMs: () => 0, answers: async () => false };
    const task = writeFakeTask();
    const all = new RolloutPool({ ...deps, model }, { concurrency: 1, retries: 0 }).run(
      ['a', 'b', 'c'].map((id) => spec(id, task)),
      () => gone.abort(new TreewardError('PROCESS_E_RESTARTS', 'as the test wants it')),
    );
    await expect(all).rejects.toMatchObject({ code: 'PROCESS_E_RESTARTS' });
    expect(opened).toEqual(['a']);
  });
});
