import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applySteps } from '../apply-steps.js';
import type { GeneratedTask, Step } from '../types.js';
import { writeTaskDirectory } from '../write-task.js';

export interface Graded {
  scores: Record<string, number>;
  reward: number;
}

/** Runs a program to its end. @returns the lines that it printed @throws Error when it failed or wrote to stderr */
async function linesOf(program: string, args: readonly string[]): Promise<string[]> {
  const child = spawn(program, args, { env: {} });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += String(chunk)));
  child.stderr.on('data', (chunk: Buffer) => (stderr += String(chunk)));
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('close', resolve),
  );
  if (code !== 0 || stderr !== '') throw new Error(`${args[0]}: exit ${String(code)}: ${stderr}`);
  return stdout.trimEnd().split('\n');
}

export async function runReward(rewardDirectory: string, workspace?: string): Promise<Graded> {
  const rows = await linesOf('/bin/sh', [
    join(rewardDirectory, 'reward.sh'),
    ...(workspace ? [workspace] : []),
  ]);
  return { scores: JSON.parse(rows[0]!) as Record<string, number>, reward: Number(rows.at(-1)) };
}

const GRADE_EACH = `
import json, runpy, sys
grade = runpy.run_path(sys.argv[1])["grade"]
for workspace in sys.argv[2:]:
    print(json.dumps(grade([], workspace)))
`;

/**
 * What `grade` of a check.py with unweighted sub-scores says of each workspace, as `runReward` but in one process for all: starting
 * Python takes ten times as long as grading.
 */
export async function gradeEach(rewardDirectory: string, workspaces: readonly string[]): Promise<Graded[]> {
  const options = ['-I', '-S', '-B', '-c', GRADE_EACH];
  const rows = await linesOf('/usr/bin/python3', [
    ...options,
    join(rewardDirectory, 'check.py'),
    ...workspaces,
  ]);
  return rows.map((row) => {
    const scores = JSON.parse(row) as Record<string, number>;
    const values = Object.values(scores);
    return { scores, reward: values.reduce((sum, value) => sum + value, 0) / values.length };
  });
}

/** Writes the task, does each plan in a fresh copy of its inputs, and grades what is left with the real checker. */
export async function gradePlans(
  task: GeneratedTask,
  plans: readonly (readonly Step[])[],
): Promise<Graded[]> {
  const root = mkdtempSync(join(tmpdir(), 'treeward-task-'));
  try {
    writeTaskDirectory(task, join(root, 'task'));
    return await Promise.all(
      plans.map((plan, i) => {
        const workspace = join(root, `workspace-${i}`);
        cpSync(join(root, 'task', 'input_files'), workspace, { recursive: true });
        applySteps(workspace, plan);
        return runReward(join(root, 'task', 'reward'), workspace);
      }),
    );
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
