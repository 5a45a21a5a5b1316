import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  copyFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { readJson, writeJsonAtomic } from '@treeward/base';
import type { EvalTask, TaskFile } from '../types.js';

const FILE = 'eval.json';

/** A task on disk: everything of {@link EvalTask} but the files, which lie beside it. */
export interface WrittenTask extends Omit<EvalTask, 'files' | 'grading'> {
  grading: Omit<EvalTask['grading'], 'reward'>;
  directory: string;
}

/**
 * Writes any task as a ClawGym RL directory, which `treeward rollout --task` and `runRollout` take as it is: `data_entry.json`,
 * `input_files/`, `reward/reward.sh`, `mcp/`; beside them `eval.json`, what only this package's grading reads. A directory that
 * holds the same task already is left alone.
 */
export function materialise(task: EvalTask, directory: string): WrittenTask {
  const { files, grading, ...rest } = task;
  const { reward, ...judging } = grading;
  const written: WrittenTask = { ...rest, grading: judging, directory };
  const digest = digestOf(written, files, reward);
  const file = join(directory, FILE);
  if (existsSync(file) && readJson<{ digest: string }>(file).digest === digest) return written;

  rmSync(directory, { recursive: true, force: true });
  for (const each of files) put(join(directory, 'input_files'), each);
  for (const each of reward) put(join(directory, 'reward'), each);
  if (task.mcp) cpSync(task.mcp, join(directory, 'mcp'), { recursive: true });
  writeJsonAtomic(join(directory, 'data_entry.json'), {
    task_id: task.id,
    user_query: task.query,
    ...(task.sessions && {
      sessions: task.sessions
        .slice(1)
        .map(({ id, prompt, newSession }) => ({ id, prompt, new_session: newSession })),
    }),
    ...(files.length > 0 && { input_mount_dir: '~/.openclaw/workspace' }),
    metadata: { ...task.metadata, category: task.category, grading_type: grading.type },
  });
  // Last: its presence says that the directory is whole.
  writeJsonAtomic(file, { digest, ...written });
  return written;
}

/** Reads what {@link materialise} wrote. */
export const readMaterialised = (directory: string): WrittenTask => ({
  ...readJson<WrittenTask>(join(directory, FILE)),
  directory,
});

function put(root: string, { path, content }: TaskFile): void {
  const target = join(root, path);
  mkdirSync(dirname(target), { recursive: true });
  if (typeof content === 'object' && 'from' in content) copyFileSync(content.from, target);
  else writeFileSync(target, content);
}

/**
 * Copied files count by name, size and time: a fixture of many megabytes is not read to find that nothing changed. The
 * number in front grows when something else is written for the same task.
 */
function digestOf(task: WrittenTask, ...lists: readonly (readonly TaskFile[])[]): string {
  const hash = createHash('sha256').update(`2\0${JSON.stringify(task)}`);
  for (const list of lists)
    for (const { path, content } of list) {
      hash.update(`\0${path}\0`);
      if (typeof content === 'object' && 'from' in content) {
        const { size, mtimeMs } = statSync(content.from);
        hash.update(`${content.from}\0${size}\0${mtimeMs}`);
      } else hash.update(content);
    }
  return hash.digest('hex');
}

/** Bytes of a task's file. */
export const bytesOf = ({ content }: TaskFile): Buffer =>
  Buffer.from(typeof content === 'object' && 'from' in content ? readFileSync(content.from) : content);
