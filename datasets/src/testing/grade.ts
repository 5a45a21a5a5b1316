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

export async function runReward(rewardDirectory: string, workspace?: string): Promise<Graded> {
  const child = spawn('/bin/sh', [join(rewardDirectory, 'reward.sh'), ...(workspace ? [workspace] : [])], {
    env: {},
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += String(chunk)));
  child.stderr.on('data', (chunk: Buffer) => (stderr += String(chunk)));
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('close', resolve),
  );
  if (code !== 0 || stderr !== '') throw new Error(`reward.sh: exit ${String(code)}: ${stderr}`);
  const rows = stdout.trimEnd().split('\n');
  return { scores: JSON.parse(rows[0]!) as Record<string, number>, reward: Number(rows.at(-1)) };
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
