import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadTask } from '@treeward/rollout';
import { clawgymFiles, codeOf, codeOfAsync, folderOf, REFERENCE_ENTRY } from '../testing/tasks.js';
import { loadClawgymDirectories } from './clawgym-directory.js';
import { loadClawgymRows } from './clawgym-rows.js';
import { parseCsv } from './csv.js';
import { readDockerfile } from './dockerfile.js';
import { domainOf } from './domains.js';
import { loadHarbor } from './harbor.js';
import { loadHarborInImages } from './harbor-images.js';
import { loadJobbench } from './jobbench.js';
import { detectFormat, loadTasks } from './load-tasks.js';
import { materialise, readMaterialised } from './materialise.js';
import { loadOfficeqa } from './officeqa.js';
import { rewritePaths } from './workspace-paths.js';

const text = (file: { content: unknown } | undefined): string => String(file?.content);

describe('ClawGym directories', () => {
  it('reads a folder of them; the domain has one spelling; a bad one is a problem', () => {
    const root = folderOf({
      ...clawgymFiles('a/', {
        id: 'a',
        metadata: { category: 'systems and automation', timeout_seconds: 9 },
        inputs: { 'in/x.csv': '1' },
      }),
      ...clawgymFiles('set/b/', { id: 'b', metadata: { live: true, quarantined: 'broken' } }),
      ...clawgymFiles('c/', { id: 'a' }),
      'd/data_entry.json': '{',
    });
    const { tasks, problems } = loadClawgymDirectories(root);
    expect(
      tasks.map(({ id, category, live, quarantined, timeoutSeconds }) => [
        id,
        category,
        live,
        quarantined,
        timeoutSeconds,
      ]),
    ).toEqual([
      ['a', 'Systems & Automation', false, null, 9],
      ['b', '', true, 'broken', null],
    ]);
    expect(tasks[0]!.files.map(({ path }) => path)).toEqual(['in/x.csv']);
    expect(problems.map(({ code }) => code)).toEqual(['TASK_E_TWICE', 'TASK_E_JSON']);
    expect(codeOf(() => loadClawgymDirectories(folderOf({ x: '' })))).toBe('TASK_E_NONE');
  });

  it("runs ClawGym's bash entry: names of sub-scores are kept, the other machine's workspace becomes ours", () => {
    const root = folderOf(
      clawgymFiles('', {
        entry: REFERENCE_ENTRY,
        check: 'import sys\nws = sys.argv[1] or "/root/.openclaw/workspace"\n',
      }),
    );
    const { grading, warnings } = loadClawgymDirectories(root).tasks[0]!;
    const files = new Map(grading.reward.map((file) => [file.path, file]));
    expect(text(files.get('reward.sh'))).toContain('average.py');
    expect(text(files.get('check.py'))).toContain('"/workspace"');
    expect(warnings).toHaveLength(1);
  });

  it('an entry for another interpreter is started by that one, a plain one is left alone', () => {
    const entryOf = (entry: string) =>
      loadClawgymDirectories(folderOf(clawgymFiles('', { entry }))).tasks[0]!.grading.reward.find(
        ({ path }) => path === 'reward.sh',
      )!;
    expect(text(entryOf('#!/usr/bin/env python3\nprint(1)\n'))).toContain(
      'exec python3 "${0%/*}/reward.original.sh"',
    );
    expect(entryOf('#!/bin/sh\necho 1\n').content).toHaveProperty('from');
  });

  it('a rubric makes it hybrid at 0.7 and 0.3', () => {
    const rules = [{ name: 'r', file_path: 'out.md', scores: { '0': 'no', '0.5': 'half', '1': 'yes' } }];
    const root = folderOf({
      ...clawgymFiles(''),
      'reward/rubric.json': JSON.stringify({ eval_type: 'llm_rubric', rules }),
    });
    const { grading } = loadClawgymDirectories(root).tasks[0]!;
    expect(grading).toMatchObject({ type: 'hybrid', weights: { automated: 0.7, judge: 0.3 } });
    expect(grading.rubric!.criteria[0]).toMatchObject({ anchors: [0, 0.5, 1], filePath: 'out.md' });
    const skipped = folderOf({ ...clawgymFiles(''), 'reward/rubric.json': '{"skip_rubric": true}' });
    expect(loadClawgymDirectories(skipped).tasks[0]!.grading.type).toBe('automated');
    const twice = folderOf({
      ...clawgymFiles(''),
      'reward/rubric.json': JSON.stringify([...rules, ...rules]),
    });
    expect(loadClawgymDirectories(twice).problems[0]!.code).toBe('TASK_E_RUBRIC');
  });

  it('becomes a directory that runRollout takes as it is, written once', () => {
    const task = loadClawgymDirectories(folderOf(clawgymFiles('', { inputs: { 'a/b.txt': 'x' } }))).tasks[0]!;
    const out = join(folderOf({}), 'task');
    materialise(task, out);
    expect(loadTask(out)).toMatchObject({
      id: 'task_0',
      query: 'Write out.txt.',
      inputFiles: join(out, 'input_files'),
    });
    expect(readFileSync(join(out, 'input_files/a/b.txt'), 'utf8')).toBe('x');
    expect(readMaterialised(out)).toMatchObject({ id: 'task_0', format: 'clawgym', directory: out });
    expect(existsSync(join(out, 'reward/check.py'))).toBe(true);
    const before = readFileSync(join(out, 'eval.json'), 'utf8');
    materialise(task, out);
    expect(readFileSync(join(out, 'eval.json'), 'utf8')).toBe(before);
    materialise({ ...task, query: 'Other.' }, out);
    expect(loadTask(out).query).toBe('Other.');
  });
});

describe('ClawGym rows', () => {
  const row = {
    prompt: 'Do it in ~/.openclaw/workspace now.',
    hook_code: 'python3 reward/test.py /root/.openclaw/workspace/workspace',
    hook_lang: 'bash',
    input_files: [
      { file_path: 'in/a.txt', content: 'a' },
      { file_path: 'reward/test.py', content: 'print("{}")' },
    ],
    rules: null,
    macro_category: 'Software Development',
    origin_template: 'x\nid: t-17\n',
  };

  it('keeps the checker from the inputs, names the task by its origin and rewrites the workspace', () => {
    const { tasks } = loadClawgymRows(join(folderOf({ 'a.jsonl': `${JSON.stringify(row)}\n\n` }), 'a.jsonl'));
    expect(tasks[0]).toMatchObject({
      id: 't-17',
      category: 'Software Development',
      query: 'Do it in /workspace now.',
    });
    expect(tasks[0]!.files.map(({ path }) => path)).toEqual(['in/a.txt']);
    expect(text(tasks[0]!.grading.reward.find(({ path }) => path === 'hook.sh'))).toBe(
      'python3 reward/test.py /workspace\n',
    );
  });

  it('each bad row is a problem named by its line; the rest is read', () => {
    const lines = [
      '{',
      JSON.stringify({ prompt: '' }),
      JSON.stringify({ ...row, hook_code: '' }),
      JSON.stringify({ ...row, input_files: [{ file_path: '../x', content: '' }] }),
      JSON.stringify(row),
    ];
    const file = join(folderOf({ 'a.jsonl': `\uFEFF${lines.join('\r\n')}` }), 'a.jsonl');
    const { tasks, problems } = loadClawgymRows(file);
    expect(tasks).toHaveLength(1);
    expect(problems.map(({ code, file: where }) => [code, where.split(':').at(-1)])).toEqual([
      ['TASK_E_ROW', '1'],
      ['TASK_E_ROW', '2'],
      ['TASK_E_HOOK', '3'],
      ['TASK_E_PATH', '4'],
    ]);
  });
});

describe('JobBench', () => {
  const rubrics = [
    { rubric: 'R', criterion: ['a', 'b'], weight: 3 },
    { rubric: 'S', criterion: 'c', weight: 1 },
  ];
  it('reads tasks of every profession; the agent sees task_folder/ and nothing else', () => {
    const root = folderOf({
      'easy/nurse/task1/RUBRICS.json': JSON.stringify({ rubrics }),
      'easy/nurse/task1/task_card.md': 'What people read: the hidden solution.',
      'easy/nurse/task1/task_folder/TASK_INSTRUCTIONS.txt': 'Plan it.\n',
      'easy/nurse/task1/task_folder/plan.csv': 'x',
      'main/clerk/task2/RUBRICS.json': JSON.stringify({ evaluation_rubrics: rubrics }),
      'main/clerk/task2/task_folder/TASK_INSTRUCTIONS.txt': 'File it.',
      'main/clerk/task2/files_required_to_search/a.txt': '',
      'main/clerk/task3/RUBRICS.json': '[]',
      'main/clerk/task3/task_folder/TASK_INSTRUCTIONS.txt': 'x',
      'main/clerk/task4/RUBRICS.json': JSON.stringify(rubrics),
      'main/clerk/task4/task_card.md': 'A card is no prompt.',
    });
    const { tasks, problems } = loadJobbench(root);
    expect(tasks.map(({ id, category, live, query }) => [id, category, live, query])).toEqual([
      ['easy-nurse-task1', 'nurse', false, 'Plan it.'],
      ['main-clerk-task2', 'clerk', true, 'File it.'],
    ]);
    expect(tasks[0]!.grading.rubric!.groups).toEqual([
      { weight: 3, criteria: [0, 1] },
      { weight: 1, criteria: [2] },
    ]);
    expect(tasks.map(({ files }) => files.map(({ path }) => path))).toEqual([
      ['TASK_INSTRUCTIONS.txt', 'plan.csv'],
      ['TASK_INSTRUCTIONS.txt'],
    ]);
    expect(problems.map(({ code }) => code)).toEqual(['TASK_E_RUBRIC', 'TASK_E_FILE']);
  });
});

describe('OfficeQA', () => {
  it('reads quoted cells, takes the documents that are there and says which are not', () => {
    const root = folderOf({
      'officeqa.csv':
        'uid,question,answer,source_docs,source_files,difficulty\nq1,"What, ""exactly""?\nSay.",42,d,"a.txt, gone.txt",easy\nq2,Why?,,d,,hard\n',
      'docs/a.txt': 'text',
    });
    const { tasks, problems } = loadOfficeqa(root);
    expect(tasks[0]).toMatchObject({
      id: 'q1',
      category: 'easy',
      warnings: ['the source file gone.txt is not there'],
    });
    expect(tasks[0]!.query).toMatch(/^What, "exactly"\?\nSay\./);
    expect(tasks[0]!.files.map(({ path }) => path)).toEqual(['documents/a.txt']);
    expect(problems[0]!.code).toBe('TASK_E_ROW');
  });

  it('finds the documents where the corpus has them; without source_files their names are in the addresses', () => {
    const address = 'https://example.org/title/treasury-bulletin-407';
    const root = folderOf({
      'officeqa_full.csv': `uid,question,answer,source_docs,source_files,difficulty\nq1,Why?,"1,2",d,"a.txt\nb.txt",easy\n`,
      'treasury_bulletins_parsed/transformed/a.txt': 'text',
      'treasury_bulletins_parsed/transformed/b.txt': 'text',
    });
    const first = loadOfficeqa(root).tasks[0]!;
    expect([first.files.map(({ path }) => path), first.warnings]).toEqual([
      ['documents/a.txt', 'documents/b.txt'],
      [],
    ]);
    const older = folderOf({
      'officeqa.csv': `uid,question,answer,source_docs,difficulty\nq1,Why?,1,"${address}/january-1941-6529?page=15\n${address}/june-2025-687694 page 76",hard\n`,
      'treasury_bulletins_parsed/transformed/treasury_bulletin_1941_01.txt': 'text',
    });
    const second = loadOfficeqa(older).tasks[0]!;
    expect(second.files.map(({ path }) => path)).toEqual(['documents/treasury_bulletin_1941_01.txt']);
    expect(second.warnings).toEqual(['the source file treasury_bulletin_2025_06.txt is not there']);
  });

  it.each([
    ['an open quote', 'a,b\n"x,y\n', 'TASK_E_CSV'],
    ['a short row', 'a,b\nx\n', 'TASK_E_CSV'],
  ])('%s', (_, csv, code) => {
    expect(codeOf(() => parseCsv(csv, 'f'))).toBe(code);
  });
});

describe('Harbor', () => {
  const files = {
    't/task.toml':
      'version = "1.0"\n[metadata]\ncategory = "ops"\n[verifier]\ntimeout_sec = 30.0\n[agent]\ntimeout_sec = 120.0\n',
    't/instruction.md': 'Fix /app/main.py. Leave /apparel alone.\n',
    't/environment/Dockerfile':
      'FROM python:3.12\nWORKDIR /app\nCOPY main.py .\nCOPY data/ ./data/\nRUN pip install x \\\n  y\nCOPY --from=b /x /y\n',
    't/environment/main.py': 'print("/app/x")\n',
    't/environment/data/a.txt': 'a',
    't/tests/test.sh': 'python3 /tests/test_it.py && echo 1 > /logs/verifier/reward.txt\n',
    't/tests/test_it.py': 'open("/app/main.py")\n',
  };

  it('makes the image’s working directory the workspace and says what it cannot do', () => {
    const { tasks } = loadHarbor(folderOf(files));
    expect(tasks[0]).toMatchObject({
      id: 't',
      category: 'ops',
      timeoutSeconds: 120,
      query: 'Fix /workspace/main.py. Leave /apparel alone.',
    });
    expect(tasks[0]!.files.map(({ path }) => path)).toEqual(['main.py', 'data/a.txt']);
    expect(text(tasks[0]!.files[0])).toBe('print("/workspace/x")\n');
    const reward = new Map(tasks[0]!.grading.reward.map((file) => [file.path, file]));
    expect(text(reward.get('tests/test.sh'))).toBe(
      'python3 /workspace/reward/tests/test_it.py && echo 1 > /tmp/logs/verifier/reward.txt\n',
    );
    expect(text(reward.get('tests/test_it.py'))).toBe('open("/workspace/main.py")\n');
    expect(tasks[0]!.grading.timeoutMs).toBe(30_000);
    expect(tasks[0]!.warnings.join()).toMatch(/pip install x.*--from=b/s);
  });

  it('a bad task.toml or a missing test is a problem', () => {
    const root = folderOf({
      'a/task.toml': 'x = [',
      'a/instruction.md': '',
      'b/task.toml': 'version = "1"',
      'b/instruction.md': 'x',
    });
    expect(loadHarbor(root).problems.map(({ code }) => code)).toEqual(['TASK_E_TOML', 'TASK_E_FILE']);
  });

  it('in its own image: without a docker that answers it is an error of its own', async () => {
    const cache = folderOf({});
    const options = { cache, socket: join(cache, 'none.sock') };
    expect(await codeOfAsync(() => loadHarborInImages(folderOf(files), options))).toBe('HARBOR_E_DOCKER');
    expect(await codeOfAsync(() => loadHarborInImages(cache, options))).toBe('TASK_E_NONE');
  });

  it('a copy to somewhere outside is not carried out', () => {
    const context = folderOf({ 'a.txt': '' });
    expect(readDockerfile('COPY a.txt /etc/a.txt', context)).toMatchObject({
      files: [],
      unsupported: ['COPY a.txt /etc/a.txt'],
    });
  });
});

describe('by what lies there', () => {
  it.each([
    ['clawgym', clawgymFiles('t/')],
    ['pinchbench', { 'tasks/manifest.yaml': '', 'tasks/task_a.md': '' }],
    ['harbor', { 't/task.toml': 'version="1"', 't/instruction.md': 'x', 't/tests/test.sh': '' }],
    [
      'jobbench',
      {
        's/p/t/RUBRICS.json': '[{"rubric":"r","criterion":"c","weight":1}]',
        's/p/t/task_folder/TASK_INSTRUCTIONS.txt': 'x',
      },
    ],
  ])('%s', (format, files) => {
    expect(detectFormat(folderOf(files as Record<string, string>))).toBe(format);
  });

  it('the licence of a set is read where it lies', () => {
    expect(
      loadTasks('clawgym', folderOf({ ...clawgymFiles('t/'), LICENSE: '\nApache License\n' })).set.licence,
    ).toBe('Apache License');
  });

  it.each([
    ['/root/.openclaw/workspace/a', '/workspace/a'],
    ['"$HOME/.openclaw/workspace"', '"/workspace"'],
    ['~/.openclaw/workspace/workspace/a', '/workspace/a'],
    ['/root/.openclaw/workspace-other', '/root/.openclaw/workspace-other'],
  ])('%s → %s', (from, to) => {
    expect(rewritePaths(from).text).toBe(to);
  });

  it.each([
    ['productivity and collaboration', 'Productivity & Collaboration'],
    ['P&C', 'Productivity & Collaboration'],
    ['coding', 'coding'],
  ])('domain %s', (from, to) => {
    expect(domainOf(from)).toBe(to);
  });
});
