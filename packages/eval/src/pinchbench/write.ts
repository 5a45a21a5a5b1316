import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { readJson, TreewardError, writeJsonAtomic } from '@treeward/base';
import { bytesOf } from '../formats/materialise.js';
import type { EvalTask } from '../types.js';

/** `task_<id>` with no signs that a suite's list of ids could not hold. */
export const pinchbenchId = (id: string): string =>
  `task_${id.replace(/^task_/, '').replace(/[^A-Za-z0-9_-]/g, '_')}`;

/**
 * Writes ClawGym tasks in PinchBench's form: `tasks/task_<id>.md`, `assets/<id>/…`, `tasks/manifest.yaml`, and `solutions/<id>.json` of tasks
 * that bring one. The checker's text becomes the task's python block, so that both forms give one number.
 * @throws TreewardError TASK_E_CONVERT for a task whose check.py is not one self-contained `grade(transcript, workspace_path)`
 */
export function writePinchbench(tasks: readonly EvalTask[], out: string): string[] {
  const files = tasks.map((task) => writeOne(task, out));
  const categories: Record<string, string[]> = {};
  for (const task of tasks) (categories[task.category || 'other'] ??= []).push(pinchbenchId(task.id));
  writeFileSync(join(out, 'tasks', 'manifest.yaml'), stringify({ run_first: [], core: [], categories }));
  return files;
}

function writeOne(task: EvalTask, out: string): string {
  const id = pinchbenchId(task.id);
  const code = checkerText(task);
  for (const file of task.files) {
    const path = join(out, 'assets', id, file.path);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytesOf(file));
  }
  const meta = {
    id,
    name: task.name,
    category: task.category || 'other',
    grading_type: 'automated',
    timeout_seconds: task.timeoutSeconds ?? 300,
    workspace_files: task.files.map(({ path }) => ({ source: `${id}/${path}`, dest: path })),
    ...(task.live && { live: true }),
    ...(task.quarantined !== null && { quarantined: task.quarantined }),
  };
  const expected =
    task.grading.expectedBehavior ||
    'The agent does what the prompt asks, and leaves the result in the files that it names.';
  const fence = '`'.repeat(Math.max(3, ...[...code.matchAll(/^`+/gm)].map(([run]) => run.length + 1)));
  const sections = [
    ['Prompt', fenceHeadings(task.query)],
    ['Expected Behavior', expected],
    [
      'Grading Criteria',
      scoreNames(code)
        .map((name) => `- [ ] ${name}`)
        .join('\n'),
    ],
    ['Automated Checks', `${fence}python\n${code.trimEnd()}\n${fence}`],
  ];
  const file = join(out, 'tasks', `${id}.md`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    `---\n${stringify(meta)}---\n\n${sections.map(([name, body]) => `## ${name}\n\n${body}\n`).join('\n')}`,
  );
  const solution = join(task.source, 'solution', 'reference.json');
  if (existsSync(solution))
    writeJsonAtomic(join(out, 'solutions', `${id}.json`), readJson<unknown>(solution));
  return file;
}

/** A prompt's own `## ` lines would cut the section: they become third-level headings. */
const fenceHeadings = (text: string): string => text.replace(/^##(?=\s)/gm, '###');

function checkerText(task: EvalTask): string {
  const fail = (what: string): TreewardError =>
    new TreewardError('TASK_E_CONVERT', `${task.id}: ${what}`, {
      data: { task: task.id, file: join(task.source, 'reward') },
      hints: [
        'a convertible task has one reward/check.py with `def grade(transcript, workspace_path)` and no data files',
      ],
    });
  const file = join(task.source, 'reward', 'check.py');
  if (!existsSync(file)) throw fail('there is no reward/check.py');
  const text = readFileSync(file, 'utf8');
  if (!/^def\s+grade\s*\(/m.test(text)) throw fail('check.py defines no grade()');
  if (/\b__file__\b/.test(text)) throw fail('check.py reads files beside it');
  return text;
}

/** Names that the checker gives scores to, as far as its text shows them. */
const scoreNames = (code: string): string[] => {
  const names = [...code.matchAll(/^\s*(?:scores\[)?["']([a-z][a-z0-9_]{2,60})["']\]?\s*[:=]/gm)].map(
    ([, name]) => name!,
  );
  return names.length > 0 ? [...new Set(names)] : ['all requirements of the prompt are met'];
};
