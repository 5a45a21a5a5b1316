import { existsSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { z } from 'zod';
import { readJson, TreewardError } from '@treeward/base';
import { taskMcp } from './task-mcp.js';
import type { Task } from './types.js';

const dataEntry = z.object({
  task_id: z.string().min(1),
  user_query: z.string().min(1),
  /** Beyond the format: what the user says later, after the agent has ended. */
  sessions: z
    .array(z.object({ prompt: z.string().min(1), new_session: z.boolean().default(false) }))
    .nullish(),
  input_mount_dir: z.string().nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
});

const isDirectory = (path: string): boolean => existsSync(path) && statSync(path).isDirectory();

/**
 * Loads a task directory in the ClawGym RL format: `data_entry.json`, optional `input_files/`, `reward/reward.sh`; beyond
 * the format, optional `mcp/` (task-mcp.ts) and `sessions`: further prompts, each a run of the harness after the first. @throws TreewardError TASK_E_MISSING, TASK_E_ENTRY, TASK_E_REWARD, TASK_E_MCP naming the file and field
 */
export function loadTask(path: string): Task {
  const directory = resolve(path);
  const file = join(directory, 'data_entry.json');
  if (!existsSync(file)) {
    throw new TreewardError('TASK_E_MISSING', `${directory} is not a task: data_entry.json is missing`, {
      data: { file },
      hints: ['name a folder that holds data_entry.json, reward/reward.sh and, optionally, input_files/'],
    });
  }
  const parsed = dataEntry.safeParse(readJson<unknown>(file));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const field = issue?.path.join('.') || '(the whole file)';
    throw new TreewardError('TASK_E_ENTRY', `${file}: field ${field}: ${issue?.message ?? 'not valid'}`, {
      data: { file, field },
      hints: [
        'the fields are task_id, user_query, sessions?, input_mount_dir?, metadata? (design: ClawGym RL task directory)',
      ],
    });
  }
  const rewardDirectory = join(directory, 'reward');
  if (!existsSync(join(rewardDirectory, 'reward.sh'))) {
    throw new TreewardError('TASK_E_REWARD', `${directory}: reward/reward.sh is missing`, {
      data: { file: join(rewardDirectory, 'reward.sh') },
      hints: ['a task needs a checker whose last output line is a number in [0,1]'],
    });
  }
  const inputFiles = join(directory, 'input_files');
  return {
    id: parsed.data.task_id || basename(directory),
    directory,
    query: parsed.data.user_query,
    sessions: [
      { prompt: parsed.data.user_query, newSession: false },
      ...(parsed.data.sessions ?? []).map(({ prompt, new_session: newSession }) => ({ prompt, newSession })),
    ],
    inputFiles: isDirectory(inputFiles) ? inputFiles : null,
    rewardDirectory,
    metadata: parsed.data.metadata ?? {},
    mcp: taskMcp(directory),
  };
}
