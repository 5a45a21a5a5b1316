import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readJson } from '@treeward/base';
import { applySteps } from './apply-steps.js';
import { sampleTasks } from './sample.js';
import type { Step } from './types.js';
import { writeSolutions } from './write-solutions.js';
import { writeTaskDirectory } from './write-task.js';

const GRADE = `import runpy, sys
scores = runpy.run_path(sys.argv[1])["grade"]([], sys.argv[2])
print(sum(scores.values()) / len(scores))`;

describe('solutions of a written task', () => {
  it.each(sampleTasks().map((task) => [task.family, task] as const))(
    '%s: the reference earns 1, wrong ones less, and the mean of grade() is the reward of reward.sh',
    (_, task) => {
      const directory = join(mkdtempSync(join(tmpdir(), 'solutions-')), 'task');
      writeTaskDirectory(task, directory);
      writeSolutions(task, directory);
      const score = (steps: Step[] | null): number => {
        const workspace = mkdtempSync(join(tmpdir(), 'workspace-'));
        if (existsSync(join(directory, 'input_files')))
          cpSync(join(directory, 'input_files'), workspace, { recursive: true });
        if (steps) applySteps(workspace, steps);
        mkdirSync(workspace, { recursive: true });
        const printed = execFileSync('/bin/sh', [join(directory, 'reward/reward.sh'), workspace], {
          encoding: 'utf8',
        });
        const reward = Number(printed.trim().split('\n').at(-1));
        const mean = Number(
          execFileSync('/usr/bin/python3', ['-c', GRADE, join(directory, 'reward/check.py'), workspace], {
            encoding: 'utf8',
          }),
        );
        expect(mean).toBeCloseTo(reward, 6);
        return reward;
      };
      const stepsOf = (file: string): Step[] =>
        readJson<{ steps: Step[] }>(join(directory, 'solution', file)).steps;
      expect(score(null)).toBe(0);
      expect(score(stepsOf('reference.json'))).toBe(1);
      const wrong = readdirSync(join(directory, 'solution/wrong'));
      expect(wrong).toHaveLength(task.flaws.length);
      for (const file of wrong) expect(score(stepsOf(`wrong/${file}`))).toBeLessThan(1);
    },
  );
});
