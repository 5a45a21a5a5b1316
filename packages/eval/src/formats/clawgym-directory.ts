import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { TreewardError } from '@treeward/base';
import { loadTask } from '@treeward/rollout';
import type { EvalTask, Grading, LoadedTasks, TaskFile } from '../types.js';
import { averaging } from './checker-scripts.js';
import { collectTasks } from './collect.js';
import { domainOf } from './domains.js';
import { filesBelow } from './files-below.js';
import { readForeignJson } from './read-text.js';
import { parseRubricJson } from './rubric-json.js';
import { rewriteFile, rewritePaths } from './workspace-paths.js';

/** The paper's weights of a task that code and a rubric judge. */
export const HYBRID = { automated: 0.7, judge: 0.3 };

/** ClawGym's own entry: check.py's values, averaged by a second Python that forgets their names. */
const REFERENCE_ENTRY = /reward\/check\.py[\s\S]*sum\(float\(v\) for v in data\.values\(\)\) \/ len\(data\)/;

/** The directories that are tasks: the folder itself, or each one below it (two levels) that holds `data_entry.json`. */
export function taskDirectories(root: string): string[] {
  const has = (path: string): boolean => existsSync(join(path, 'data_entry.json'));
  if (has(root)) return [root];
  const below = (path: string): string[] =>
    readdirSync(path)
      .sort()
      .map((name) => join(path, name))
      .filter((child) => statSync(child).isDirectory());
  return below(root).flatMap((child) => (has(child) ? [child] : below(child).filter(has)));
}

/**
 * Reads a task in the ClawGym RL format.
 * @throws TreewardError what `loadTask` does, TASK_E_RUBRIC, TASK_E_JSON, TASK_E_HUGE, TASK_E_ENCODING
 */
export function loadClawgymDirectory(path: string): EvalTask {
  readForeignJson(join(path, 'data_entry.json')); // its limits; rollouts read the same file by themselves
  const task = loadTask(path);
  const { metadata, directory } = task;
  const warnings: string[] = [];
  const text = (key: string): string => (typeof metadata[key] === 'string' ? metadata[key] : '');
  const query = rewritePaths(task.query);
  if (query.changed)
    warnings.push('the prompt names the workspace of another machine; it says /workspace now');
  const rubricFile = join(task.rewardDirectory, 'rubric.json');
  const rubric = existsSync(rubricFile)
    ? parseRubricJson(readForeignJson(rubricFile), rubricFile)
    : parseRubricJson(metadata['rules'] ?? metadata['rule'], join(directory, 'data_entry.json'));
  const grading: Grading = {
    type: rubric ? 'hybrid' : 'automated',
    weights: HYBRID,
    reward: rewardFiles(task.rewardDirectory, warnings),
    rubric,
    expectedBehavior: text('expected'),
    answer: null,
    timeoutMs: 120_000,
  };
  const seconds = metadata['timeout_seconds'];
  return {
    id: task.id,
    name: text('name') || task.id,
    format: 'clawgym',
    category: domainOf(text('macro_category') || text('category')),
    query: query.text,
    sessions:
      task.sessions.length > 1
        ? task.sessions.map((session, index) => ({ ...session, id: `${index + 1}` }))
        : null,
    timeoutSeconds: typeof seconds === 'number' && seconds > 0 ? seconds : null,
    files: task.inputFiles ? filesBelow(task.inputFiles) : [],
    grading,
    live: metadata['live'] === true,
    quarantined: text('quarantined') || null,
    metadata,
    mcp: task.mcp ? join(directory, 'mcp') : null,
    source: directory,
    warnings,
  };
}

/**
 * `reward/` so that it runs in our sandbox: OpenClaw's workspace path becomes ours, ClawGym's reference entry is replaced by
 * one that keeps the names of the sub-scores, any other entry is started by the interpreter that its first line names.
 */
function rewardFiles(directory: string, warnings: string[]): TaskFile[] {
  let rewritten = false;
  const files = filesBelow(directory).map((file) => {
    const result = rewriteFile(file);
    rewritten ||= result.changed;
    return result.file;
  });
  if (rewritten)
    warnings.push('the checker names the workspace of another machine; its copy says /workspace');
  const entry = readFileSync(join(directory, 'reward.sh'), 'utf8');
  const others = files.filter(({ path }) => path !== 'reward.sh');
  if (REFERENCE_ENTRY.test(entry)) return [...others, ...averaging('python3 -B "$here/check.py" "$PWD"')];
  const interpreter = /^#!\s*(?:\/usr\/bin\/env\s+)?(\S+)/.exec(entry)?.[1] ?? '/bin/sh';
  if (basename(interpreter) === 'sh') return files;
  return [
    ...others,
    { ...files.find(({ path }) => path === 'reward.sh')!, path: 'reward.original.sh' },
    { path: 'reward.sh', content: `#!/bin/sh\nexec ${interpreter} "\${0%/*}/reward.original.sh"\n` },
  ];
}

/** @throws TreewardError TASK_E_NONE when there is no task in the folder */
export function loadClawgymDirectories(root: string): LoadedTasks {
  const directory = resolve(root);
  const directories = existsSync(directory) ? taskDirectories(directory) : [];
  if (directories.length === 0) {
    throw new TreewardError('TASK_E_NONE', `${directory}: no task found`, {
      data: { file: directory },
      hints: ['name a folder of task directories (each with data_entry.json), or a .jsonl file of rows'],
    });
  }
  return {
    ...collectTasks(directories, loadClawgymDirectory),
    set: { name: basename(directory), version: null, licence: null },
  };
}
