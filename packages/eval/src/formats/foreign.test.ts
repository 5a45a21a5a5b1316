import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { clawgymFiles, codeOf, folderOf } from '../testing/tasks.js';
import type { EvalTask, FormatName } from '../types.js';
import { loadClawgymRows } from './clawgym-rows.js';
import { loadTasks } from './load-tasks.js';

type Files = Record<string, string | Uint8Array>;

/** The smallest task of each format; PinchBench's files have a test of their own (task-file.test.ts). */
const SMALL: Record<Exclude<FormatName, 'pinchbench'>, Record<string, string>> = {
  clawgym: { ...clawgymFiles('t/'), 't/reward/rubric.json': '{"skip_rubric":\ntrue}\n' },
  jobbench: {
    'easy/nurse/t/RUBRICS.json': '[{"rubric": "R",\n"criterion": "c", "weight": 1}]\n',
    'easy/nurse/t/task_folder/TASK_INSTRUCTIONS.txt': 'Plan it.\nNow.\n',
  },
  officeqa: { 'officeqa.csv': 'uid,question,answer,difficulty\nq1,"What,\nexactly?",42,easy\n' },
  harbor: {
    't/task.toml': 'version = "1.0"\n[agent]\ntimeout_sec = 9.0\n',
    't/instruction.md': 'Fix /app/a.\nNow.\n',
    't/tests/test.sh': 'true\n',
  },
};
const FORMATS = Object.keys(SMALL) as (keyof typeof SMALL)[];
const load = (format: FormatName, files: Files) => loadTasks(format, folderOf(files));
/** Without what names the folder it lies in. */
const said = ({ query, timeoutSeconds, category, grading }: EvalTask) => ({
  ...{ query, timeoutSeconds, category },
  judged: [grading.type, grading.rubric?.criteria, grading.answer],
});

describe('files of others, each with a stated behaviour', () => {
  it.each(FORMATS)('%s: CRLF and a byte order mark change nothing', (format) => {
    const plain = load(format, SMALL[format]);
    const windows = load(
      format,
      Object.fromEntries(
        Object.entries(SMALL[format]).map(([path, text]) => {
          const mark = path.endsWith('.sh') ? '' : '\uFEFF';
          return [path, `${mark}${path.endsWith('.sh') ? text : text.replaceAll('\n', '\r\n')}`];
        }),
      ),
    );
    expect(plain.problems).toEqual([]);
    expect(windows.problems).toEqual([]);
    expect(windows.tasks.map(said)).toEqual(plain.tasks.map(said));
    expect(plain.tasks).toHaveLength(1);
  });

  /** The small task without one of its files, or with another in its place. */
  const without = (format: keyof typeof SMALL, path: string): Files =>
    Object.fromEntries(Object.entries(SMALL[format]).filter(([name]) => name !== path));
  const withFile = (format: keyof typeof SMALL, path: string, text: string | Uint8Array): Files => ({
    ...SMALL[format],
    [path]: text,
  });
  const big = 'x'.repeat(4 * 1024 * 1024 + 1);
  const latin = new Uint8Array([0x7b, 0xe9, 0x7d]);
  const rubrics = 'easy/nurse/t/RUBRICS.json';
  const instructions = 'easy/nurse/t/task_folder/TASK_INSTRUCTIONS.txt';

  it.each([
    ['clawgym', 'no checker', without('clawgym', 't/reward/reward.sh'), 'TASK_E_REWARD'],
    [
      'clawgym',
      'an entry that is no JSON',
      withFile('clawgym', 't/data_entry.json', '{"task_id": '),
      'TASK_E_JSON',
    ],
    [
      'clawgym',
      'an entry without a prompt',
      withFile('clawgym', 't/data_entry.json', '{"task_id": "a"}'),
      'TASK_E_ENTRY',
    ],
    ['clawgym', 'an entry in Latin-1', withFile('clawgym', 't/data_entry.json', latin), 'TASK_E_ENCODING'],
    ['clawgym', 'a huge entry', withFile('clawgym', 't/data_entry.json', `{"a": "${big}"}`), 'TASK_E_HUGE'],
    ['clawgym', 'a rubric that is no JSON', withFile('clawgym', 't/reward/rubric.json', '{'), 'TASK_E_JSON'],
    ['jobbench', 'no instructions', without('jobbench', instructions), 'TASK_E_FILE'],
    ['jobbench', 'rubrics that are no JSON', withFile('jobbench', rubrics, '['), 'TASK_E_JSON'],
    ['jobbench', 'rubrics of nothing', withFile('jobbench', rubrics, '[]'), 'TASK_E_RUBRIC'],
    ['jobbench', 'huge instructions', withFile('jobbench', instructions, big), 'TASK_E_HUGE'],
    ['jobbench', 'instructions in Latin-1', withFile('jobbench', instructions, latin), 'TASK_E_ENCODING'],
    ['harbor', 'no instruction', without('harbor', 't/instruction.md'), 'TASK_E_FILE'],
    ['harbor', 'no test', without('harbor', 't/tests/test.sh'), 'TASK_E_FILE'],
    ['harbor', 'TOML that is none', withFile('harbor', 't/task.toml', 'version = ['), 'TASK_E_TOML'],
    [
      'harbor',
      'a time limit of nothing',
      withFile('harbor', 't/task.toml', '[agent]\ntimeout_sec = 0\n'),
      'TASK_E_TOML',
    ],
    ['harbor', 'a huge instruction', withFile('harbor', 't/instruction.md', big), 'TASK_E_HUGE'],
    ['harbor', 'an instruction in Latin-1', withFile('harbor', 't/instruction.md', latin), 'TASK_E_ENCODING'],
    [
      'officeqa',
      'a row without an answer',
      withFile('officeqa', 'officeqa.csv', 'uid,question,answer\nq,Why?,\nr,Who?,1\n'),
      'TASK_E_ROW',
    ],
  ] as [keyof typeof SMALL, string, Files, string][])(
    '%s: %s is a problem with a code; the task beside it is read',
    (format, _, files, code) => {
      const beside = Object.entries(SMALL[format]).map(([path, text]) => [
        path.replace(/(^|\/)t\//, '$1u/'),
        text.replace('task_0', 'u'),
      ]);
      const { tasks, problems } = load(format, { ...Object.fromEntries(beside), ...files });
      expect(problems.map((problem) => problem.code)).toEqual([code]);
      expect(tasks).toHaveLength(1);
    },
  );

  it.each([
    ['an open quote', 'uid,question,answer\nq,"Why?,1\n', 'TASK_E_CSV'],
    ['a huge table', `uid,question,answer\nq,${big},1\n`, 'TASK_E_HUGE'],
    ['a table in Latin-1', latin, 'TASK_E_ENCODING'],
  ])('officeqa: %s ends the reading: no row can be told from another', (_, csv, code) => {
    expect(codeOf(() => load('officeqa', { 'officeqa.csv': csv }))).toBe(code);
  });

  it('rows: the limit is one of each row, so a whole data set may be larger; a bad line costs one row', () => {
    const row = (id: string, prompt: string): string =>
      JSON.stringify({ id, prompt, hook_code: 'echo 1', input_files: [] });
    const lines = [
      row('a', 'Do it.'),
      row('b', big),
      ...['c', 'd', 'e'].map((id) => row(id, 'x'.repeat(2_000_000))),
    ];
    const text = Buffer.concat([
      Buffer.from(`\uFEFF${lines.join('\r\n')}\n  \n`),
      latin,
      Buffer.from(`\n${row('f', 'Last.')}`),
    ]);
    const { tasks, problems } = loadClawgymRows(join(folderOf({ 'a.jsonl': text }), 'a.jsonl'));
    expect(tasks.map(({ id }) => id)).toEqual(['a', 'c', 'd', 'e', 'f']);
    expect(problems.map(({ code, file }) => [code, file.split(':').at(-1)])).toEqual([
      ['TASK_E_HUGE', '2'],
      ['TASK_E_ENCODING', '7'],
    ]);
  });
});
