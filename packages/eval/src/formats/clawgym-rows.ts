import { basename } from 'node:path';
import { z } from 'zod';
import { TreewardError } from '@treeward/base';
import type { EvalTask, LoadedTasks, TaskFile } from '../types.js';
import { averaging, noCode } from './checker-scripts.js';
import { HYBRID } from './clawgym-directory.js';
import { collectTasks } from './collect.js';
import { domainOf } from './domains.js';
import { readLines } from './read-text.js';
import { parseRubricJson } from './rubric-json.js';
import { safePath } from './safe-path.js';
import { rewriteFile, rewritePaths } from './workspace-paths.js';

const row = z.object({
  prompt: z.string().min(1),
  hook_code: z.string().nullish(),
  hook_lang: z.string().nullish(),
  input_files: z
    .array(z.object({ file_path: z.string().min(1), content: z.string(), file_format: z.string().nullish() }))
    .nullish(),
  rule: z.unknown().optional(),
  rules: z.unknown().optional(),
  origin_template: z.string().nullish(),
  id: z.union([z.string(), z.number()]).nullish(),
  task_id: z.string().nullish(),
  category: z.string().nullish(),
  macro_category: z.string().nullish(),
  action: z.unknown().optional(),
});

/**
 * One row of a ClawGym data set: prompt, inputs (the checker `reward/…` among them), hook and rubric. `where` names it in messages.
 * @throws TreewardError TASK_E_ROW, TASK_E_HOOK, TASK_E_PATH, TASK_E_RUBRIC
 */
export function clawgymRow(value: unknown, where: string, index: number): EvalTask {
  const parsed = row.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new TreewardError(
      'TASK_E_ROW',
      `${where}: field ${issue.path.join('.') || '(the row)'}: ${issue.message}`,
      {
        data: { file: where, field: issue.path.join('.') },
        hints: ['a row has prompt, input_files, hook_code and, optionally, rules'],
      },
    );
  }
  const found = parsed.data;
  const all = (found.input_files ?? []).map((file): TaskFile => ({
    path: safePath(file.file_path, where),
    content: file.content,
  }));
  const isChecker = ({ path }: TaskFile): boolean => path.startsWith('reward/');
  const rubric = parseRubricJson(found.rules ?? found.rule, where);
  const checker = all
    .filter(isChecker)
    .map((file) => rewriteFile({ ...file, path: file.path.slice('reward/'.length) }).file);
  const hook = found.hook_code?.trim() ?? '';
  if (hook === '' && rubric === null) {
    throw new TreewardError('TASK_E_HOOK', `${where}: neither hook_code nor rules: nothing could judge it`, {
      data: { file: where, field: 'hook_code' },
    });
  }
  const query = rewritePaths(found.prompt);
  const id = found.task_id ?? found.id ?? /\bid:\s*([\w.-]+)/.exec(found.origin_template ?? '')?.[1];
  return {
    id: String(id ?? `row-${String(index).padStart(5, '0')}`),
    name: String(id ?? `row ${index}`),
    format: 'clawgym',
    category: domainOf(found.macro_category ?? found.category ?? ''),
    query: query.text,
    sessions: null,
    timeoutSeconds: null,
    files: all.filter((file) => !isChecker(file)),
    grading: {
      type: rubric === null ? 'automated' : hook === '' ? 'judge' : 'hybrid',
      weights: HYBRID,
      reward:
        hook === ''
          ? noCode('this task has only a rubric: run it by `treeward eval`')
          : hookFiles(hook, checker),
      rubric,
      expectedBehavior: '',
      answer: null,
      timeoutMs: 120_000,
    },
    live: false,
    quarantined: null,
    metadata: {
      ...(found.category && { category: found.category }),
      ...(found.macro_category && { macro_category: found.macro_category }),
      ...(found.action !== undefined && { action: found.action }),
    },
    mcp: null,
    source: where,
    warnings: query.changed
      ? ['the prompt names the workspace of another machine; it says /workspace now']
      : [],
  };
}

/** The hook is shell text, run in the workspace; what it prints is averaged as ClawGym's reward.sh does. */
function hookFiles(hook: string, checker: readonly TaskFile[]): TaskFile[] {
  const reserved = new Set(['reward.sh', 'average.py', 'hook.sh']);
  return [
    ...checker.filter(({ path }) => !reserved.has(path)),
    ...averaging('/bin/bash "$here/hook.sh"'),
    { path: 'hook.sh', content: `${rewritePaths(hook).text}\n` },
  ];
}

/** A `.jsonl` file of rows. A line that is no row is a problem of its own, named by its number. */
export function loadClawgymRows(file: string): LoadedTasks {
  const lines = readLines(file);
  const places = [...lines.keys()];
  const index = new Map(places.map((where, at) => [where, at]));
  return {
    ...collectTasks(places, (where) => {
      const text = lines.get(where)!();
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch (cause) {
        throw new TreewardError('TASK_E_ROW', `${where}: not JSON: ${(cause as Error).message}`, {
          cause,
          data: { file: where },
        });
      }
      return clawgymRow(value, where, index.get(where)!);
    }),
    set: { name: basename(file), version: null, licence: null },
  };
}
