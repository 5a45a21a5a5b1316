import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeJsonAtomic } from '@treeward/base';
import { DOMAINS } from '../types.js';
import { checkSource } from './check-source.js';
import { SET_FAMILIES } from './families/index.js';
import { makeSetTask, type Level, type Plan, type SetTask } from './set-task.js';

/** Seeds of a level: what is committed. Others make other tasks of the same kinds. */
export const SET_SEEDS: Readonly<Record<Level, readonly number[]>> = { base: [1, 2, 3], hard: [1, 2] };

export const setTasks = (level: Level): SetTask[] =>
  SET_FAMILIES.filter((family) => family.level === level).flatMap((family) =>
    SET_SEEDS[level].map((seed) => makeSetTask(family, seed)),
  );

const REWARD_SH = `#!/bin/sh
# reward.sh [WORKSPACE]: prints check.py's sub-scores as JSON, then their mean as the last line.
case $0 in */*) here=\${0%/*} ;; *) here=. ;; esac
exec /usr/bin/python3 -I -S -B -c '
import json, runpy, sys
grade = runpy.run_path(sys.argv[1])["grade"]
try:
    with open(sys.argv[3]) as file:
        transcript = json.load(file).get("transcript", [])
except (OSError, ValueError):
    transcript = []
scores = grade(transcript, sys.argv[2])
print(json.dumps(scores))
print(sum(map(float, scores.values())) / len(scores))
' "$here/check.py" "\${1:-$here/..}" "\${OPENCLAW_REWARD_PAYLOAD:-/nonexistent}"
`;

const planFile = ({ steps, finalMessage }: Plan): object => ({
  steps,
  final_message: finalMessage ?? 'Done.',
});

/** Files of a task directory by path: ClawGym's RL format, with its solutions beside it. */
export function setTaskFiles(task: SetTask): Record<string, string> {
  const json = (value: unknown): string => JSON.stringify(value, null, 2) + '\n';
  const inputs = Object.entries(task.files);
  return {
    ...Object.fromEntries(inputs.map(([path, text]) => [`input_files/${path}`, text])),
    'reward/check.py': checkSource(task),
    'reward/reward.sh': REWARD_SH,
    'solution/reference.json': json(planFile(task.reference)),
    ...Object.fromEntries(
      Object.entries(task.wrong).map(([name, plan]) => [
        `solution/wrong/${name}.json`,
        json({ why: plan.why, ...planFile(plan) }),
      ]),
    ),
    // Last, because its presence makes the directory a task.
    'data_entry.json': json({
      task_id: task.id,
      user_query: task.query,
      ...(inputs.length > 0 && { input_mount_dir: '~/.openclaw/workspace' }),
      metadata: {
        category: DOMAINS[task.domain],
        grading_type: 'automated',
        level: task.level,
        family: task.family,
        seed: task.seed,
        timeout_seconds: task.timeoutSeconds,
        expected: task.expected,
      },
    }),
  };
}

export function writeSetTask(task: SetTask, directory: string): void {
  for (const [path, text] of Object.entries(setTaskFiles(task))) {
    const full = join(directory, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
    if (path.endsWith('.sh')) chmodSync(full, 0o755);
  }
}

/** `<directory>/<id>/` for each task, and index.json. */
export function writeSet(level: Level, directory: string): SetTask[] {
  const tasks = setTasks(level);
  for (const task of tasks) writeSetTask(task, join(directory, task.id));
  writeJsonAtomic(join(directory, 'index.json'), {
    schema: 1,
    set: level,
    tasks: tasks.map(({ id, family, domain, seed }) => ({
      id,
      family,
      category: DOMAINS[domain],
      level,
      seed,
    })),
  });
  return tasks;
}
