import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RunFolder } from '@treeward/base';
import { trainTask, type GeneratedTask } from '@treeward/datasets';
import type { RolloutSpec } from '@treeward/rollout';
import { writeScript } from '../demonstrator.js';
import { materialise, spreadHarnesses } from '../plan-step.js';

export interface SoakShape {
  rollouts: number;
  /** Shares by harness. */
  harnesses: Readonly<Record<string, number>>;
  seed: string;
  /** Milliseconds of wall clock for each. */
  wallMs: number;
}

/** Different tasks: enough to keep several lower layers in use, few enough that they are shared. */
const TASKS = 16;

export const scriptsOf = (run: RunFolder): string => join(run.root, 'scripts');

/** Deterministic in its arguments, so that a soak that was killed goes on with the same rollouts. */
export function planSoak(run: RunFolder, { rollouts, harnesses, seed, wallMs }: SoakShape): RolloutSpec[] {
  const tasks = Array.from({ length: Math.min(TASKS, rollouts) }, (_, k): [GeneratedTask, string] => {
    const task = trainTask(0, k, seed);
    return [task, materialise(task, join(run.root, 'tasks', `t${k}`))];
  });
  return spreadHarnesses(harnesses, rollouts).map((harness, index) => {
    const rolloutId = `soak-${String(index).padStart(5, '0')}`;
    const [task, directory] = tasks[index % tasks.length]!;
    if (!existsSync(join(scriptsOf(run), `${rolloutId}.json`))) {
      writeScript(scriptsOf(run), rolloutId, task, harness, {
        seed: `${seed}/${rolloutId}`,
        mixture: { clean: 0.5, dominant: 0.5, other: 0 },
      });
    }
    return {
      rolloutId,
      task: directory,
      harness,
      group: `g${index % tasks.length}`,
      seed: `${seed}/${rolloutId}`,
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 200 },
      limits: { wallMs, maxTurns: 12, maxTokens: 4000 },
      labels: { family: task.family },
    };
  });
}
