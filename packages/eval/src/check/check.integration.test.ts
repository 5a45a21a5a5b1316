import { afterAll, describe, expect, it } from 'vitest';
import { BubblewrapProvider } from '@treeward/sandbox';
import { loadTasks } from '../formats/load-tasks.js';
import { clawgymFiles, folderOf, taskFile } from '../testing/tasks.js';
import type { FormatName } from '../types.js';
import { checkTasks } from './check-tasks.js';

const sandboxes = new BubblewrapProvider({ run: 'eval-check-test' });
afterAll(() => sandboxes.close());

const ENTRY = 'exec python3 -B reward/run.py\n';
const RUN =
  'import sys\nsys.path.insert(0, "reward")\nimport check, json\ns = check.grade([], ".")\nprint(json.dumps(s))\nprint(sum(s.values()) / len(s))\n';
const good = (
  check: string,
  extra: Record<string, string> = {},
  query = 'Write total.txt with the sum of numbers.csv.',
) => ({
  ...clawgymFiles('t/', {
    entry: ENTRY,
    query,
    inputs: { 'numbers.csv': '1\n2\n39\n' },
    check: `import os, random\ndef text(p):\n    return open(p).read().strip() if os.path.isfile(p) else None\ndef grade(transcript, workspace_path):\n${check.replace(/^/gm, '    ')}\n`,
  }),
  't/reward/run.py': RUN,
  't/solution/reference.json': JSON.stringify({
    steps: [
      { verb: 'read', path: 'numbers.csv' },
      { verb: 'exec', command: 'paste -sd+ numbers.csv | sed "s/.*/42/" > total.txt' },
    ],
  }),
  't/solution/wrong/close.json': JSON.stringify({
    why: 'off by one',
    steps: [{ verb: 'write', path: 'total.txt', content: '41' }],
  }),
  't/solution/wrong/edit.json': JSON.stringify({
    why: 'spoils the input',
    steps: [{ verb: 'edit', path: 'numbers.csv', old: '39', new: '40' }],
  }),
  ...extra,
});
const RIGHT =
  'return {"there": float(text("total.txt") is not None), "right": float(text("total.txt") == "42")}';
const check = async (files: Record<string, string>, format: FormatName = 'clawgym') =>
  checkTasks(loadTasks(format, folderOf(files)), sandboxes);

describe('tasks check', () => {
  it('a good task: reference 1, untouched 0, wrong ones below 1', async () => {
    const { tasks, ok, failed } = await check(good(RIGHT));
    expect([ok, failed]).toEqual([1, 0]);
    expect(tasks[0]).toMatchObject({
      id: 'task_0',
      ok: true,
      reference: 1,
      untouched: 0,
      empty: 0,
      scaffold: 0.5,
      deterministic: true,
      network: false,
      vacuous: [],
      leaks: [],
      problems: [],
    });
    expect(tasks[0]!.wrong).toEqual([
      { name: 'close', score: 0.5, why: 'off by one' },
      { name: 'edit', score: 0, why: 'spoils the input' },
    ]);
    expect(tasks[0]!.warnings.join()).toContain('placeholder files score 0.5: there');
  });

  it.each([
    [
      'a vacuous check',
      good('return {"right": float(text("total.txt") == "42"), "no_writes_elsewhere": 1.0}'),
      /untouched workspace scores 0.5: no_writes_elsewhere/,
    ],
    [
      'a reference that falls short',
      good('return {"right": float(text("total.txt") == "43")}'),
      /reference solution scores 0: right/,
    ],
    [
      'a wrong solution that passes',
      good('return {"there": float(text("total.txt") is not None)}'),
      /wrong solution close scores 1/,
    ],
    [
      'chance in the checker',
      good('return {"right": float(text("total.txt") == "42") * (0.5 + random.random() / 2)}'),
      /reference solution: two gradings differ/,
    ],
    [
      'a checker that uses the network',
      good(`${RIGHT}\nimport socket`),
      /network: reward\/check.py:\d+: import socket/,
    ],
    [
      'a part of the grading among the inputs',
      good(RIGHT, { 't/input_files/answers.json': '{}' }),
      /leak: input_files\/answers.json/,
    ],
    [
      'an answer that stands in an input',
      good(RIGHT, {
        't/input_files/notes.md': 'The report is: the total of all the numbers is 42.',
        't/solution/reference.json': JSON.stringify({
          steps: [
            { verb: 'write', path: 'total.txt', content: '42' },
            { verb: 'write', path: 'report.md', content: 'the total of all the numbers is 42.' },
          ],
        }),
      }),
      /leak: the output report.md stands in input_files\/notes.md/,
    ],
    [
      'a step that cannot be done',
      good(RIGHT, {
        't/solution/reference.json': JSON.stringify({
          steps: [{ verb: 'edit', path: 'numbers.csv', old: 'gone', new: 'x' }],
        }),
      }),
      /old text is not there/,
    ],
    [
      'a solution that is none',
      good(RIGHT, { 't/solution/reference.json': '{"steps": [{"verb": "dance"}]}' }),
      /field steps.0.verb/,
    ],
    ['a checker that gives no number', good('return {"x": float("nan")}'), /untouched workspace: VERIFIER_E/],
  ])('finds %s', async (_, files, problem) => {
    const { tasks, failed } = await check(files);
    expect(failed).toBe(1);
    expect(tasks[0]!.problems.join('\n')).toMatch(problem);
  });

  it('an unreadable task fails the set; foreign tasks without solutions are judged by the rest', async () => {
    const report = await check({
      ...clawgymFiles('a/', { id: 'a', entry: 'echo \'{"x": 0}\'; echo 0\n' }),
      'b/data_entry.json': '[]',
    });
    expect(report.tasks[0]).toMatchObject({ ok: true, reference: null, wrong: [] });
    expect([report.ok, report.failed, report.problems[0]!.code]).toEqual([1, 1, 'TASK_E_ENTRY']);
  });
});

describe('tasks check on foreign folders', () => {
  const found = async (files: Record<string, string>, format: FormatName) => {
    const { tasks } = await check(files, format);
    return Object.fromEntries(tasks.map((task) => [task.id, task]));
  };

  it('Harbor: a good task by its solve.sh, and what is wrong with four others', async () => {
    const reward = '> /logs/verifier/reward.txt';
    const task = (id: string, test: string, more: Record<string, string> = {}): Record<string, string> => ({
      [`${id}/task.toml`]: 'version = "1.0"',
      [`${id}/instruction.md`]: 'Write /app/out.txt.',
      [`${id}/tests/test.sh`]: test,
      ...more,
    });
    const there = `test -f /app/out.txt && echo 1 ${reward} || echo 0 ${reward}`;
    const tasks = await found(
      {
        // The script runs in a sandbox: a folder of this machine is not there.
        ...task('good', there, { 'good/solution/solve.sh': 'test ! -e /work && echo done > /app/out.txt' }),
        ...task('vacuous', `echo 1 ${reward}`),
        ...task('leak', there, {
          'leak/environment/Dockerfile': 'FROM x\nWORKDIR /app\nCOPY solution.txt .\n',
          'leak/environment/solution.txt': 'x',
        }),
        ...task('chance', `python3 -c 'import random; print(random.random())' ${reward}`),
        ...task('network', `pip install pytest\n${there}`),
      },
      'harbor',
    );
    expect(tasks['good']).toMatchObject({ ok: true, reference: 1, untouched: 0, deterministic: true });
    expect(tasks['vacuous']).toMatchObject({ ok: false, untouched: 1, vacuous: ['reward'] });
    expect(tasks['leak']!.leaks).toEqual(['input_files/solution.txt looks like a part of the grading']);
    expect(tasks['chance']).toMatchObject({ ok: false, deterministic: false });
    expect(tasks['network']).toMatchObject({ ok: false, network: true });
  });

  it('PinchBench: a good task by its solution, and what is wrong with four others', async () => {
    const right =
      'import os\ndef grade(transcript, workspace_path):\n    x = os.path.join(workspace_path, "out.txt")\n';
    const scores = (said: string, before = ''): string => `${before}${right}    return {${said}}`;
    const there = '"there": float(os.path.isfile(x))';
    const task = (id: string, checks: string, meta = ''): Record<string, string> => ({
      [`tasks/task_${id}.md`]: taskFile({ checks, meta }).replace('id: task_a', `id: task_${id}`),
    });
    const tasks = await found(
      {
        ...task('good', scores(there)),
        'solutions/task_good.json': JSON.stringify({
          steps: [{ verb: 'write', path: 'out.txt', content: 'done' }],
        }),
        ...task('vacuous', scores(`${there}, "polite": 1.0`)),
        ...task('leak', scores(there), 'workspace_files: [{path: ground_truth.csv, content: x}]\n'),
        ...task('chance', scores('"lucky": random.random()', 'import random\n')),
        ...task('network', scores(there, 'import urllib.request\n')),
      },
      'pinchbench',
    );
    expect(tasks['task_good']).toMatchObject({ ok: true, reference: 1, untouched: 0, deterministic: true });
    expect(tasks['task_vacuous']).toMatchObject({ ok: false, untouched: 0.5, vacuous: ['polite'] });
    expect(tasks['task_leak']!.leaks).toEqual([
      'input_files/ground_truth.csv looks like a part of the grading',
    ]);
    expect(tasks['task_chance']).toMatchObject({ ok: false, deterministic: false });
    expect(tasks['task_network']).toMatchObject({ ok: false, network: true });
  });
});
