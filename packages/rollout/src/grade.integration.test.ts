import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { BubblewrapProvider } from '@treeward/sandbox';
import { SandboxGrader } from './grade.js';
import { loadTask } from './task.js';
import { writeFakeTask } from './testing/fake-task.js';

describe('SandboxGrader in a real sandbox', () => {
  const provider = new BubblewrapProvider({ run: 'grade-test' });
  const grader = new SandboxGrader(provider);
  afterAll(() => provider.close());

  const workspace = (content: string): string => {
    const directory = mkdtempSync(join(tmpdir(), 'workspace-'));
    writeFileSync(join(directory, 'answer.txt'), content);
    return directory;
  };

  it('grades many rollouts of one task at the same time, each on its own workspace', async () => {
    const task = loadTask(writeFakeTask('$(cat answer.txt)'));
    const wanted = [0, 0.25, 0.5, 0.75, 1];
    const grades = await Promise.all(
      wanted.map((value, index) =>
        grader.grade(task, workspace(String(value)), {}, { id: `grade-test-${index}` }),
      ),
    );
    expect(grades.map((grade) => grade.reward)).toEqual(wanted);
  });

  it('takes no reward folder that the agent left', async () => {
    const task = loadTask(writeFakeTask('0.5'));
    const directory = workspace('');
    symlinkSync('/etc', join(directory, 'reward'));
    const { reward } = await grader.grade(task, directory, {}, { id: 'grade-test-link' });
    expect(reward).toBe(0.5);
  });
});
