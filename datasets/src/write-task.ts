import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { TreewardError, writeJsonAtomic } from '@treeward/base';
import { DOMAINS, type GeneratedTask, type Rule } from './types.js';

// checker/ lies beside src/ and dist/ alike.
const template = (file: string): string =>
  readFileSync(new URL(`../checker/${file}`, import.meta.url), 'utf8');

/** check.py with the task's rules in it: JSON of strings, numbers and lists is a Python literal. */
function checker(rules: readonly Rule[]): string {
  const source = template('check.py');
  const literal = `RULES = [\n${rules.map((rule) => `    ${JSON.stringify(rule)},\n`).join('')}]`;
  if (!source.includes('\nRULES = []\n')) {
    throw new TreewardError('DATASET_E_CHECKER', 'checker/check.py has no line `RULES = []` to fill in');
  }
  // A function as replacement: `$` in a rule is no pattern.
  return source.replace('RULES = []', () => literal);
}

/**
 * One task in the ClawGym RL format: `data_entry.json`, `input_files/`, `reward/{reward.sh,check.py}`. The last line
 * reward.sh prints is the weighted reward; ClawGym's own script would average the sub-scores unweighted.
 *
 * @throws TreewardError DATASET_E_EXISTS when the directory already holds a task
 */
export function writeTaskDirectory(task: GeneratedTask, directory: string): void {
  if (existsSync(join(directory, 'data_entry.json'))) {
    throw new TreewardError('DATASET_E_EXISTS', `${directory} already holds a task`, {
      hints: ['choose another directory, or remove this one'],
      data: { directory },
    });
  }
  for (const [path, text] of Object.entries(task.files)) {
    const full = join(directory, 'input_files', path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
  }
  const reward = join(directory, 'reward');
  mkdirSync(reward, { recursive: true });
  writeFileSync(join(reward, 'check.py'), checker(task.rules));
  writeFileSync(join(reward, 'reward.sh'), template('reward.sh'));
  chmodSync(join(reward, 'reward.sh'), 0o755);
  // Last, because its presence makes the directory a task.
  writeJsonAtomic(join(directory, 'data_entry.json'), {
    task_id: task.id,
    user_query: task.query,
    input_mount_dir: '~/.openclaw/workspace',
    metadata: {
      category: DOMAINS[task.domain],
      grading_type: 'automated',
      family: task.family,
      seed: task.seed,
    },
  });
}

export interface TaskIndex {
  tasks: { id: string; family: string; category: string }[];
}

/** Each task in `<directory>/<id>/`, and `index.json` beside them. Tasks that are there already are kept. */
export function writeTasks(directory: string, tasks: readonly GeneratedTask[]): string[] {
  const paths = tasks.map((task) => {
    const path = join(directory, task.id);
    if (!existsSync(join(path, 'data_entry.json'))) writeTaskDirectory(task, path);
    return path;
  });
  const index: TaskIndex = {
    tasks: tasks.map(({ id, family, domain }) => ({ id, family, category: DOMAINS[domain] })),
  };
  writeJsonAtomic(join(directory, 'index.json'), index);
  return paths;
}
