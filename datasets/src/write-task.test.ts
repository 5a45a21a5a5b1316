import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { applySteps } from './apply-steps.js';
import { FAMILY_NAMES, heldOut, makeTask } from './make-task.js';
import { sampleTasks } from './sample.js';
import { seedOf } from './splits.js';
import { runReward } from './testing/grade.js';
import { writeSolutions } from './write-solutions.js';
import { writeTaskDirectory, writeTasks } from './write-task.js';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'treeward-write-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const tree = (directory: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path.slice(directory.length + 1), readFileSync(path, 'utf8')]),
  );

test('a task directory holds exactly what the format says', () => {
  const task = makeTask('max', seedOf('train', 1));
  writeTaskDirectory(task, root);
  const inputs = Object.keys(task.files).map((path) => `input_files/${path}`);
  expect(Object.keys(tree(root))).toEqual([
    'data_entry.json',
    ...inputs,
    'reward/check.py',
    'reward/reward.sh',
  ]);
  expect(JSON.parse(readFileSync(join(root, 'data_entry.json'), 'utf8'))).toEqual({
    task_id: task.id,
    user_query: task.query,
    input_mount_dir: '~/.openclaw/workspace',
    metadata: { category: 'Analysis & Reasoning', grading_type: 'automated', family: 'max', seed: task.seed },
  });
  expect(statSync(join(root, 'reward/reward.sh')).mode & 0o111).toBe(0o111);
});

test('a directory that holds a task is not overwritten', () => {
  writeTaskDirectory(makeTask('max', 1), root);
  expect(() => writeTaskDirectory(makeTask('max', 2), root)).toThrow(
    expect.objectContaining({ code: 'DATASET_E_EXISTS', data: { directory: root } }),
  );
});

test('a folder of tasks has an index; writing it again keeps what is there', () => {
  const tasks = heldOut(5);
  const paths = writeTasks(root, tasks);
  const before = tree(root);
  expect(writeTasks(root, tasks)).toEqual(paths);
  expect(tree(root)).toEqual(before);
  const index = JSON.parse(before['index.json']!) as { tasks: { id: string }[] };
  expect(index.tasks.map(({ id }) => id)).toEqual(tasks.map(({ id }) => id));
});

test('the committed sample is what the generator makes (else: npx nx run datasets:sample)', () => {
  const tasks = sampleTasks();
  writeTasks(root, tasks).forEach((path, at) => writeSolutions(tasks[at]!, path));
  expect(tree(fileURLToPath(new URL('../tasks/sample', import.meta.url)))).toEqual(tree(root));
  expect(readdirSync(root)).toHaveLength(FAMILY_NAMES.length + 1);
});

test('without an argument the workspace is where reward/ was copied to', async () => {
  const task = makeTask('kb', seedOf('train', 2));
  writeTaskDirectory(task, join(root, 'task'));
  const workspace = join(root, 'workspace');
  cpSync(join(root, 'task/input_files'), workspace, { recursive: true });
  applySteps(workspace, task.oracle);
  cpSync(join(root, 'task/reward'), join(workspace, 'reward'), { recursive: true });
  expect((await runReward(join(workspace, 'reward'))).reward).toBe(1);
});

test('the checker reads regular files only and survives what a policy leaves', async () => {
  const task = makeTask('max', seedOf('train', 3));
  const target = task.rules[0]!.path;
  const answer = task.oracle.at(-1) as { content: string };
  writeTaskDirectory(task, join(root, 'task'));
  const reward = async (prepare: (workspace: string) => void): Promise<number> => {
    const workspace = mkdtempSync(join(root, 'w-'));
    prepare(workspace);
    return (await runReward(join(root, 'task/reward'), workspace)).reward;
  };
  const secret = join(root, 'answer');
  writeFileSync(secret, answer.content);
  expect(await reward((w) => symlinkSync(secret, join(w, target)))).toBe(0);
  expect(await reward((w) => mkdirSync(join(w, target)))).toBe(0);
  expect(await reward((w) => writeFileSync(join(w, target), Buffer.from([0xff, 0xfe, 0])))).toBe(0.1);
  expect(await reward((w) => writeFileSync(join(w, target), 'x'.repeat(1e6)))).toBe(0.1);
  expect(await reward((w) => writeFileSync(join(w, target), `\n ${answer.content}  \n\n`))).toBe(1);
  // Modules planted in the workspace are not imported.
  const planted = (w: string): void => {
    for (const name of ['os.py', 'stat.py', 'sitecustomize.py'])
      writeFileSync(join(w, name), 'raise SystemExit(9)');
  };
  expect(await reward(planted)).toBe(0);
});

test('a bug counts as tested only if the last test saw the last edit', async () => {
  const task = makeTask('bug', seedOf('train', 4));
  const [open, fix, run] = task.oracle as [never, never, never];
  writeTaskDirectory(task, join(root, 'task'));
  const scores = async (steps: readonly never[], touch?: (workspace: string) => void) => {
    const workspace = mkdtempSync(join(root, 'w-'));
    cpSync(join(root, 'task/input_files'), workspace, { recursive: true });
    applySteps(workspace, steps);
    touch?.(workspace);
    return (await runReward(join(root, 'task/reward'), workspace)).scores;
  };
  expect(await scores([open, fix, run])).toEqual({ fixed: 1, tested: 1 });
  expect(await scores([open, run, fix])).toEqual({ fixed: 1, tested: 0 });
  expect(await scores([open, run])).toEqual({ fixed: 0, tested: 0 });
  const source = task.rules[0]!.path;
  const spoil = (w: string): void => writeFileSync(join(w, source), 'def f():\n  pass');
  expect(await scores([open, fix, run], spoil)).toEqual({ fixed: 0, tested: 0 });
});
