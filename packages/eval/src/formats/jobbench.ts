import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { TreewardError } from '@treeward/base';
import type { Criterion, EvalTask, LoadedTasks, Rubric } from '../types.js';
import { noCode } from './checker-scripts.js';
import { collectTasks } from './collect.js';
import { filesBelow } from './files-below.js';
import { readForeignJson, readText } from './read-text.js';

const entry = z.looseObject({
  rubric: z.string().nullish(),
  name: z.string().nullish(),
  criterion: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
  weight: z.coerce.number().gt(0),
});
const list = z.array(entry).min(1);
const rubricFile = z.union([list, z.object({ rubrics: list }), z.object({ evaluation_rubrics: list })]);

/**
 * Every criterion is yes or no; **all** criteria of a rubric must hold to earn its weight; the score is earned ÷ total weight.
 * @throws TreewardError TASK_E_RUBRIC
 */
export function jobbenchRubric(value: unknown, file: string): Rubric {
  const parsed = rubricFile.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new TreewardError(
      'TASK_E_RUBRIC',
      `${file}: field ${issue.path.join('.') || '(the file)'}: ${issue.message}`,
      {
        data: { file, field: issue.path.join('.') },
        hints: ['expected a list of {"rubric", "criterion": ["…"], "weight"}'],
      },
    );
  }
  const { data } = parsed;
  const entries = Array.isArray(data) ? data : 'rubrics' in data ? data.rubrics : data.evaluation_rubrics;
  const criteria: Criterion[] = [];
  const groups = entries.map(({ rubric, name, criterion, weight }, index) => {
    const title = rubric ?? name ?? `rubric ${index + 1}`;
    const texts = Array.isArray(criterion) ? criterion : [criterion];
    const from = criteria.length;
    criteria.push(...texts.map((text) => ({ name: title, text, anchors: [0, 1], weight, filePath: null })));
    return { weight, criteria: texts.map((_, at) => from + at) };
  });
  return { criteria, source: JSON.stringify(value), groups };
}

/** The prompt, a file among those the agent gets. */
const INSTRUCTIONS = 'TASK_INSTRUCTIONS.txt';

/**
 * Reads one task folder. The agent sees `task_folder/` and nothing else: `RUBRICS.json`, `task_card.md` (the brief for people) and
 * `files_required_to_search/` (what it should find in the open web) are withheld.
 * @throws TreewardError TASK_E_FILE, TASK_E_RUBRIC
 */
export function loadJobbenchTask(directory: string, root: string): EvalTask {
  const inputs = join(directory, 'task_folder');
  const instructions = join(inputs, INSTRUCTIONS);
  if (!existsSync(instructions)) {
    throw new TreewardError('TASK_E_FILE', `${directory}: task_folder/${INSTRUCTIONS} is missing`, {
      data: { file: instructions },
    });
  }
  const rubrics = join(directory, 'RUBRICS.json');
  const files = filesBelow(inputs);
  const profession = basename(dirname(directory));
  return {
    id:
      relative(root, directory)
        .split(/[\\/]/)
        .join('-')
        .replace(/[^\w.-]/g, '_') || basename(directory),
    name: `${profession}: ${basename(directory)}`,
    format: 'jobbench',
    category: profession,
    query: readText(instructions).trim(),
    sessions: null,
    timeoutSeconds: null,
    files,
    grading: {
      type: 'judge',
      weights: { automated: 0, judge: 1 },
      reward: noCode('this task has only a rubric: run it by `treeward eval jobbench`'),
      rubric: jobbenchRubric(readForeignJson(rubrics), rubrics),
      expectedBehavior: '',
      answer: null,
      timeoutMs: 120_000,
    },
    live: existsSync(join(directory, 'files_required_to_search')),
    quarantined: null,
    metadata: { profession, split: basename(dirname(dirname(directory))) },
    mcp: null,
    source: directory,
    warnings: [],
  };
}

/** `<split>/<profession>/taskN/…`, or any folder above or at one of these. @throws TreewardError TASK_E_NONE */
export function loadJobbench(root: string): LoadedTasks {
  const directory = resolve(root);
  const found: string[] = [];
  const walk = (at: string, depth: number): void => {
    if (existsSync(join(at, 'RUBRICS.json'))) found.push(at);
    else if (depth > 0)
      for (const name of readdirSync(at).sort()) {
        const path = join(at, name);
        if (statSync(path).isDirectory()) walk(path, depth - 1);
      }
  };
  if (existsSync(directory)) walk(directory, 4);
  if (found.length === 0) {
    throw new TreewardError('TASK_E_NONE', `${directory}: no folder with RUBRICS.json`, {
      data: { file: directory },
    });
  }
  return {
    ...collectTasks(found, (path) => loadJobbenchTask(path, directory)),
    set: { name: 'jobbench', version: null, licence: null },
  };
}
