import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { join } from 'node:path';
import { codeOf, folderOf, taskFile } from '../testing/tasks.js';
import { loadPinchbench } from './load.js';
import { checklist, parseSections, pythonBlock } from './sections.js';
import { CLAWGYM30, selectSuite, stem } from './suites.js';
import { loadPinchbenchTask } from './task-file.js';

const load = (text: string | Uint8Array, options: { strict?: boolean } = {}) => {
  const root = folderOf({
    'tasks/task_a.md': text,
    'assets/data.csv': 'a,b\n',
    'assets/many/one.txt': '1',
    'assets/many/two/2.txt': '2',
  });
  return loadPinchbenchTask(join(root, 'tasks/task_a.md'), { assets: join(root, 'assets'), ...options });
};

describe('a task file', () => {
  it('gives prompt, limit, checks and weights', () => {
    const task = load(taskFile({ meta: 'grading_weights:\n  automated: 0.6\n  llm_judge: 0.4\n' }));
    expect(task).toMatchObject({
      id: 'task_a',
      query: 'Do it.',
      timeoutSeconds: 60,
      category: 'basic',
      live: false,
      sessions: null,
    });
    expect(task.grading).toMatchObject({
      type: 'automated',
      weights: { automated: 0.6, judge: 0.4 },
      expectedBehavior: 'It is done.',
    });
    expect(task.grading.reward.find(({ path }) => path === 'grade.py')!.content).toContain('def grade');
  });

  it('takes fixtures from assets (files and folders) and from the file itself', () => {
    const task = load(
      taskFile({
        meta: 'workspace_files:\n  - {source: data.csv, dest: in/data.csv}\n  - {source: many, dest: more}\n  - {path: note.txt, content: "hi"}\n',
      }),
    );
    expect(task.files.map(({ path }) => path)).toEqual([
      'in/data.csv',
      'more/one.txt',
      'more/two/2.txt',
      'note.txt',
    ]);
  });

  it('reads sessions as strings, prompts and messages; the first is the prompt', () => {
    const meta =
      'multi_session: true\nsessions:\n  - one\n  - {id: b, message: two}\n  - {id: c, prompt: three, new_session: true}\n';
    const task = load(taskFile({ meta }));
    expect(task.query).toBe('one');
    expect(task.sessions).toEqual([
      { id: 'session-1', prompt: 'one', newSession: false },
      { id: 'b', prompt: 'two', newSession: false },
      { id: 'c', prompt: 'three', newSession: true },
    ]);
  });

  it('reads criteria, percentages and anchors of a rubric; without a rubric each check is one', () => {
    const rubric =
      '### Criterion 1: Right (Weight: 70%)\n\n**Score 1.0**: all\n**Score 0.5**: half\n**Score 0.0**: none\n\n### Criterion 2: Clear (Weight: 30%)\n\nProse.';
    const judged = (sections: Record<string, string>) =>
      load(taskFile({ meta: '', sections }).replace('grading_type: automated', 'grading_type: hybrid'));
    expect(
      judged({ 'LLM Judge Rubric': rubric }).grading.rubric!.criteria.map(({ name, weight, anchors }) => [
        name,
        weight,
        anchors,
      ]),
    ).toEqual([
      ['Right', 0.7, [0, 0.5, 1]],
      ['Clear', 0.3, null],
    ]);
    expect(judged({}).grading.rubric!.criteria.map(({ name }) => name)).toEqual(['done', 'well']);
    expect(judged({ 'LLM Judge Rubric': 'Just prose.' }).grading.rubric!.criteria).toHaveLength(1);
  });
});

describe('foreign files, each with a stated behaviour', () => {
  it.each([
    ['no front matter', '## Prompt\n\nx', 'TASK_E_FRONT_MATTER'],
    ['front matter that is not closed', '---\nid: a\n## Prompt\n', 'TASK_E_FRONT_MATTER'],
    ['YAML that is not YAML', '---\nid: [a\n---\n## Prompt\nx', 'TASK_E_FRONT_MATTER'],
    ['a key twice', '---\nid: a\nid: b\n---\n## Prompt\nx', 'TASK_E_FRONT_MATTER'],
    ['no id', '---\nname: a\n---\n## Prompt\nx', 'TASK_E_FRONT_MATTER'],
    ['a grading type nobody knows', taskFile().replace('automated', 'vibes'), 'TASK_E_FRONT_MATTER'],
    [
      'a time limit of nothing',
      taskFile().replace('timeout_seconds: 60', 'timeout_seconds: 0'),
      'TASK_E_FRONT_MATTER',
    ],
    ['no prompt', taskFile({ sections: { Prompt: '' } }), 'TASK_E_PROMPT'],
    ['no checks', taskFile({ sections: { 'Automated Checks': 'None.' } }), 'TASK_E_CHECKS'],
    ['checks without grade()', taskFile({ checks: 'x = 1' }), 'TASK_E_CHECKS'],
    [
      'a fixture that is missing',
      taskFile({ meta: 'workspace_files:\n  - {source: gone.csv, dest: a}\n' }),
      'TASK_E_FIXTURE',
    ],
    [
      'a fixture that climbs out',
      taskFile({ meta: 'workspace_files:\n  - {path: ../../etc/x, content: a}\n' }),
      'TASK_E_PATH',
    ],
    [
      'an absolute destination',
      taskFile({ meta: 'workspace_files:\n  - {source: data.csv, dest: /etc/passwd}\n' }),
      'TASK_E_PATH',
    ],
    [
      'a judged task without rubric or criteria',
      taskFile({ sections: { 'Grading Criteria': '' } }).replace(
        'grading_type: automated',
        'grading_type: llm_judge',
      ),
      'TASK_E_RUBRIC',
    ],
    ['bytes that are no text', new Uint8Array([0x2d, 0x2d, 0x2d, 0x0a, 0xff, 0xfe, 0x00]), 'TASK_E_ENCODING'],
    ['a huge file', `${taskFile()}${'x'.repeat(5 * 1024 * 1024)}`, 'TASK_E_HUGE'],
    [
      'a bomb of YAML aliases',
      `---\nid: a\na: &a [${'x,'.repeat(50)}]\nb: &b [${'*a,'.repeat(50)}]\nc: [${'*b,'.repeat(50)}]\n---\n## Prompt\nx`,
      'TASK_E_FRONT_MATTER',
    ],
  ])('%s', (_, text, code) => {
    expect(codeOf(() => load(text))).toBe(code);
  });

  it('CRLF and a byte order mark change nothing', () => {
    const plain = load(taskFile());
    const windows = load(`\uFEFF${taskFile().replaceAll('\n', '\r\n')}`);
    expect({ ...windows, source: '' }).toEqual({ ...plain, source: '' });
  });

  it('a heading or fence inside a fence does not cut a section', () => {
    const prompt =
      'Write this:\n\n````markdown\n## Not a section\n```python\nprint(1)\n```\n## Nor this\n````\n\nand stop.';
    const task = load(taskFile({ sections: { Prompt: prompt } }));
    expect(task.query).toBe(prompt);
    expect(task.grading.type).toBe('automated');
  });

  it('a nested fence of the same length inside python stays in the code', () => {
    const checks =
      'TEXT = """\n```json\n{}\n```\n"""\n\ndef grade(transcript, workspace_path):\n    return {"x": 1.0}';
    const task = load(taskFile({ checks }));
    expect(task.grading.reward.find(({ path }) => path === 'grade.py')!.content).toBe(checks);
  });

  it('strict cuts where the original does: at headings and back-ticks inside fences', () => {
    const prompt = 'a\n```\n## Cut\n```';
    expect(load(taskFile({ sections: { Prompt: prompt } }), { strict: true }).query).toBe('a\n```');
    const checks = 'def grade(t, w):\n    return {"x": 1.0}\n# ```\nx = 2';
    const strict = load(taskFile({ checks }), { strict: true }).grading.reward.find(
      ({ path }) => path === 'grade.py',
    )!;
    expect(strict.content).toBe('def grade(t, w):\n    return {"x": 1.0}\n#');
    expect(load(taskFile({ checks })).grading.reward.find(({ path }) => path === 'grade.py')!.content).toBe(
      checks,
    );
  });

  it('sections never throw and keep every line of plain text, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('`', '~', '\n', '#', ' ', 'a', '-', '[', ']') }),
        (text) => {
          const sections = parseSections(`## One\n${text}`);
          expect(sections.has('One') || /^##\s/m.test(text)).toBe(true);
          pythonBlock(text);
          checklist(text);
        },
      ),
    );
  });
});

describe('a set', () => {
  const manifest =
    'run_first: [task_b]\ncore: [task_a]\ncategories:\n  logs: [task_b]\n  other: [task_a, task_gone]\n';
  const set = () =>
    loadPinchbench(
      folderOf({
        'tasks/task_a.md': taskFile(),
        'tasks/task_b.md': taskFile({ meta: 'live: true\n' }).replace('id: task_a', 'id: task_b'),
        'tasks/task_bad.md': 'nothing',
        'tasks/TASK_TEMPLATE.md': 'not a task',
        'tasks/manifest.yaml': manifest,
        LICENSE: 'MIT License\n\n…',
        VERSION: '2.0.0\n',
      }),
    );

  it('is in the order and the categories of its manifest; what cannot be read is a problem, not a gap', () => {
    const loaded = set();
    expect(loaded.tasks.map(({ id, category }) => [id, category])).toEqual([
      ['task_b', 'logs'],
      ['task_a', 'other'],
    ]);
    expect(loaded.problems.map(({ code }) => code)).toEqual(['TASK_E_FRONT_MATTER', 'TASK_E_FILE']);
    expect(loaded.set).toEqual({ name: 'pinchbench', version: '2.0.0', licence: 'MIT License' });
  });

  it('suites: whole, core, categories, ids, frozen', () => {
    const { tasks, manifest: read } = set();
    const ids = (suite: string) => selectSuite(tasks, suite, read).tasks.map(({ id }) => id);
    expect(ids('all')).toEqual(['task_b', 'task_a']);
    expect(ids('core')).toEqual(['task_a']);
    expect(ids('logs')).toEqual(['task_b']);
    expect(ids('frozen')).toEqual(['task_a']);
    expect(ids('automated-only')).toEqual(['task_b', 'task_a']);
    expect(selectSuite(tasks, 'task_a,task_x', read)).toMatchObject({
      complete: false,
      note: '1 of its 2 tasks are not there: task_x',
    });
    expect(codeOf(() => selectSuite(tasks, 'nothing', read))).toBe('TASK_E_SUITE');
  });

  it('pinchbench-clawgym30 is 30 stems, old and new ids alike, and says that it is an inference', () => {
    expect(new Set(CLAWGYM30).size).toBe(30);
    expect([stem('task_00_sanity'), stem('task_sanity')]).toEqual(['sanity', 'sanity']);
    const { tasks } = set();
    const sanity = { ...tasks[0]!, id: 'task_00_sanity' };
    const chosen = selectSuite([sanity, ...tasks], 'pinchbench-clawgym30');
    expect(chosen.tasks).toEqual([sanity]);
    expect(chosen).toMatchObject({ complete: false });
    expect(chosen.note).toContain('inference');
  });

  it('an empty folder is TASK_E_NONE', () => {
    expect(codeOf(() => loadPinchbench(folderOf({ 'a.txt': '' })))).toBe('TASK_E_NONE');
  });
});
