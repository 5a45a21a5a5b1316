import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { TreewardError } from '@treeward/base';
import type { EvalTask, LoadedTasks, TaskFile } from '../types.js';
import { noCode } from './checker-scripts.js';
import { collectTasks } from './collect.js';
import { parseCsv } from './csv.js';
import { readText } from './read-text.js';

/** Asked of every harness, so that the answer can be found in what it says. */
const ANSWER_FORM =
  'Give the answer in your last message between <FINAL_ANSWER> and </FINAL_ANSWER>, as short as possible (a number with its unit, a date, a name, or a list).';

export interface OfficeqaOptions {
  /** Relative tolerance of numbers. @default 0 */
  tolerance?: number;
  /** Folders searched for the source files. @default beside the CSV */
  documents?: readonly string[];
}

/** `a.txt, b.txt`, a JSON list, or one per line. */
const listOf = (cell: string): string[] =>
  cell
    .replace(/^\[|\]$/g, '')
    .split(/[,;\n]/)
    .map((name) => name.trim().replace(/^['"]|['"]$/g, ''))
    .filter(Boolean);

/**
 * The data set's CSV (uid, question, answer, source_docs, source_files, difficulty). Source files that lie beside it become files of
 * the workspace, under `documents/`; one that does not is a warning of its task, because the corpus is fetched apart.
 * @throws TreewardError TASK_E_NONE, TASK_E_CSV
 */
export function loadOfficeqa(root: string, options: OfficeqaOptions = {}): LoadedTasks {
  const path = resolve(root);
  const directory = existsSync(path) && statSync(path).isDirectory() ? path : join(path, '..');
  const csv =
    path === directory
      ? readdirSync(directory)
          .filter((name) => name.endsWith('.csv'))
          .sort()
          .map((name) => join(directory, name))[0]
      : path;
  if (csv === undefined || !existsSync(csv)) {
    throw new TreewardError('TASK_E_NONE', `${path}: no CSV of questions`, {
      data: { file: path },
      hints: ['name the .csv, or the folder it lies in'],
    });
  }
  const folders = options.documents ?? [directory, ...foldersBelow(directory, 3)];
  const rows = parseCsv(readText(csv), csv);
  const byPlace = new Map(rows.map((row, index) => [`${csv}#${index + 1}`, row]));
  return {
    ...collectTasks([...byPlace.keys()], (where) =>
      taskOf(byPlace.get(where)!, where, folders, options.tolerance ?? 0),
    ),
    set: { name: 'officeqa', version: null, licence: 'data: CC-BY-SA; code: Apache-2.0' },
  };
}

/** The corpus lies two folders down (`treasury_bulletins_parsed/transformed/`), and beside its texts are the same as JSON and PDF. */
const foldersBelow = (directory: string, depth: number): string[] =>
  depth === 0
    ? []
    : readdirSync(directory)
        .sort()
        .map((name) => join(directory, name))
        .filter((path) => statSync(path).isDirectory())
        .flatMap((path) => [path, ...foldersBelow(path, depth - 1)]);

const MONTHS = 'january february march april may june july august september october november december'.split(
  ' ',
);

/** `…/january-1941-6529?page=15` → `treasury_bulletin_1941_01.txt`: editions of the CSV without `source_files` have only the address. */
const fileOfAddress = (address: string): string[] => {
  const [, month, year] = /\/([a-z]+)-(\d{4})-\d+/.exec(address) ?? [];
  const number = MONTHS.indexOf(month ?? '') + 1;
  return number === 0 ? [] : [`treasury_bulletin_${year}_${String(number).padStart(2, '0')}.txt`];
};

function taskOf(
  row: Record<string, string>,
  where: string,
  folders: readonly string[],
  tolerance: number,
): EvalTask {
  const { uid, question, answer, difficulty } = row;
  if (!question?.trim() || !answer?.trim()) {
    const field = question?.trim() ? 'answer' : 'question';
    throw new TreewardError('TASK_E_ROW', `${where}: ${field} is missing`, { data: { file: where, field } });
  }
  const warnings: string[] = [];
  const named = listOf(row['source_files'] ?? '');
  const addressed = (row['source_docs'] ?? '').split(/\s+/).flatMap(fileOfAddress);
  const files = [...new Set(named.length > 0 ? named : addressed)].flatMap((name): TaskFile[] => {
    const base = name.split('/').at(-1)!;
    const from = folders
      .flatMap((folder) => [join(folder, name), join(folder, base)])
      .find((file) => existsSync(file));
    if (from === undefined) warnings.push(`the source file ${name} is not there`);
    return from === undefined ? [] : [{ path: `documents/${base}`, content: { from } }];
  });
  return {
    id: uid?.trim() || where.split('#').at(-1)!,
    name: uid?.trim() ?? where,
    format: 'officeqa',
    category: difficulty?.trim() ?? '',
    query: `${question.trim()}\n\n${files.length > 0 ? 'The source documents lie in documents/. ' : ''}${ANSWER_FORM}`,
    sessions: null,
    timeoutSeconds: null,
    files,
    grading: {
      type: 'automated',
      weights: { automated: 1, judge: 0 },
      reward: noCode('the answer is compared by `treeward eval officeqa`'),
      rubric: null,
      expectedBehavior: '',
      answer: { truth: answer.trim(), tolerance },
      timeoutMs: 120_000,
    },
    live: false,
    quarantined: null,
    metadata: { difficulty: difficulty ?? '', source_docs: row['source_docs'] ?? '' },
    mcp: null,
    source: where,
    warnings,
  };
}
