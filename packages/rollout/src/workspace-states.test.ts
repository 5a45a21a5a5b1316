import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import type { FileChange } from '@treeward/sandbox';
import { appendEvents } from '@treeward/telemetry';
import { describe, expect, it } from 'vitest';
import { loadTask } from './task.js';
import { writeFakeTask } from './testing/fake-task.js';
import type { Grader } from './types.js';
import { StateGrader, WorkspaceStates } from './workspace-states.js';

const folder = (): string => mkdtempSync(join(tmpdir(), 'states-'));
const file = (path: string, sha256?: string): FileChange => ({
  path,
  kind: 'create',
  mode: 0o644,
  size: 3,
  ...(sha256 !== undefined && { sha256 }),
});
const task = loadTask(writeFakeTask('1'));

/** A record in which one call after the other arrived, at these times. */
async function recordOf(arrivals: readonly number[]): Promise<string> {
  const directory = folder();
  await appendEvents(
    directory,
    arrivals.map((time, call) => ({
      type: 'call.start',
      call,
      time,
      dialect: 'test',
      headers: {},
      bodyHash: '',
      messages: { parent: null, kept: 0, appended: [] },
      tools: { hash: '' },
      requested: {},
      unknown: [],
    })),
  );
  return directory;
}

/** Copies whose one file says how many there were before. */
const sandbox = (): { exportWorkspace: (directory: string) => Promise<void> } => {
  let copies = 0;
  return {
    exportWorkspace: (directory) => {
      writeFileSync(join(directory, 'answer.txt'), String(copies++));
      return Promise.resolve();
    },
  };
};

/** Gives what `answer` says of a workspace. */
function graderOf(answer: (workspace: string, payload: unknown) => number): Grader & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    grade: (_task, workspace, payload) => {
      asked.push(workspace);
      return new Promise((resolve) =>
        resolve({ reward: answer(workspace, payload), scores: {}, cpuSeconds: 0.25 }),
      );
    },
  };
}

describe('workspaces as calls found them', () => {
  it('are copied when they changed, graded once each without a transcript, and belong to the calls that saw them', async () => {
    const states = new WorkspaceStates(sandbox(), folder());
    await states.look(0, [], false);
    await states.look(1, [file('a', 'x')], true);
    await states.look(3, [file('a', 'x')], false); // calls 2 and 3 had both arrived
    const now = Date.now();
    const grader = graderOf((workspace, payload) => {
      expect(payload).toMatchObject({ transcript: [], final_message: '' });
      return workspace.endsWith('/0') ? 0 : 0.5;
    });
    const scores = await new StateGrader(grader).grade(task, states, await recordOf([now, now, now, now]), {
      id: 'r',
    });
    expect(scores).toMatchObject({
      score_C: [0, 0.5, 0.5, 0.5],
      graded: 2,
      late: 0,
      failed: 0,
      cpuSeconds: 0.5,
    });
    expect(grader.asked).toHaveLength(2);
  });

  it('have no score where nobody looked before the reply may have gone out', async () => {
    const states = new WorkspaceStates(sandbox(), folder());
    await states.look(0, [], false);
    await states.look(1, [], false);
    const now = Date.now();
    const directory = await recordOf([now - 10_000, now, now]);
    const scores = await new StateGrader(graderOf(() => 1)).grade(task, states, directory, { id: 'r' });
    expect(scores).toMatchObject({ score_C: [null, 1, null], late: 2, failed: 0 });
  });

  it('are unknown, not worth 0, when grading fails for a reason of ours; it is tried twice', async () => {
    const states = new WorkspaceStates(sandbox(), folder());
    await states.look(0, [], false);
    await states.look(1, [file('a', 'x')], true);
    const now = Date.now();
    let tries = 0;
    const grader = graderOf((workspace) => {
      if (workspace.endsWith('/0')) return 0.25;
      tries++;
      throw new TreewardError('SANDBOX_E_CREATE', 'no sandbox');
    });
    const scores = await new StateGrader(grader).grade(task, states, await recordOf([now, now]), { id: 'r' });
    expect(scores).toMatchObject({ score_C: [0.25, null], graded: 1, failed: 1 });
    expect(tries).toBe(2);
  });

  it('are unknown when they cannot be copied', async () => {
    const states = new WorkspaceStates(
      { exportWorkspace: () => Promise.reject(new Error('too large')) },
      folder(),
    );
    await states.look(0, [], false);
    const grader = graderOf(() => 1);
    const scores = await new StateGrader(grader).grade(task, states, await recordOf([Date.now()]), {
      id: 'r',
    });
    expect(scores).toMatchObject({ score_C: [null], graded: 0, failed: 1 });
    expect(grader.asked).toEqual([]);
  });

  it('share a grade with equal ones of other rollouts of the task, but not where a file has no hash', async () => {
    const grader = graderOf(() => 0.75);
    const by = new StateGrader(grader);
    const once = async (changes: FileChange[]): Promise<number> => {
      const root = folder();
      const states = new WorkspaceStates(sandbox(), root);
      await states.look(0, changes, changes.length > 0);
      expect(existsSync(join(root, '0', 'answer.txt'))).toBe(true);
      const { score_C, graded } = await by.grade(task, states, await recordOf([Date.now()]), { id: 'r' });
      expect(score_C).toEqual([0.75]);
      return graded;
    };
    expect([await once([file('a', 'x')]), await once([file('a', 'x')])]).toEqual([1, 0]);
    expect([await once([file('a', 'y')]), await once([])]).toEqual([1, 1]);
    expect([await once([file('b')]), await once([file('b')])]).toEqual([1, 1]);
  });
});
