import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { adapterByName } from '@treeward/harness-adapters';
import type { SandboxSession } from '@treeward/sandbox';
import { JudgeCache } from './judge/cache.js';
import { HttpJudge } from './judge/http-model.js';
import { Judge } from './judge/judge.js';
import { judgePrompt } from './judge/prompt.js';
import { ScriptedJudge } from './judge/scripted-model.js';
import { materialise } from './formats/materialise.js';
import { loadPinchbenchTask } from './pinchbench/task-file.js';
import { selectSuite } from './pinchbench/suites.js';
import { compareEvaluations } from './report/comparison.js';
import { describeEvaluation } from './report/describe.js';
import { judgeServer, openaiAnswer } from './testing/judge-server.js';
import { summaryOf } from './testing/summaries.js';
import { folderOf, taskFile } from './testing/tasks.js';
import { canonicalCall } from './transcript/canonical-tools.js';
import { readEpisode } from './transcript/conversations.js';
import { transcriptEvents } from './transcript/events.js';
import { writeRecord } from './testing/record.js';
import type { Rubric } from './types.js';

const criterion = (name: string, weight: number) => ({
  name,
  text: name,
  anchors: null,
  weight,
  filePath: null,
});
const rubric: Rubric = { criteria: [criterion('a', 0.9), criterion('b', 0.1)], source: '', groups: null };
const slots = { task: 'T', expectedBehavior: '', outputFiles: [], otherFiles: [], transcript: null };
const request = { tag: 't', rubric, slots, missing: new Set<number>() };
const scripted = (...replies: (string | number[])[]) => new ScriptedJudge({ t: replies });
const pinchbench = (meta = '') => {
  const root = folderOf({ 'task_a.md': taskFile({ meta }) });
  return loadPinchbenchTask(join(root, 'task_a.md'), { assets: root });
};

/**
 * One test for each row of the design's table of complaints about PinchBench; the number is the complaint's issue. Rows that need a
 * real sandbox or CLI are tested where the title says.
 */
describe('complaints about PinchBench and what we do', () => {
  it('#11 #374 the judge behaves as an agent: ours is one plain call without tools, with the task’s material only', async () => {
    const server = await judgeServer([
      openaiAnswer('{"scores": {"criterion_1": 1, "criterion_2": 1}, "notes": ""}'),
    ]);
    await new Judge(new HttpJudge({ dialect: 'openai', model: 'm', baseUrl: server.url })).grade(request);
    await server.close();
    expect(server.seen).toHaveLength(1);
    expect(Object.keys(server.seen[0]!.body)).not.toContain('tools');
    expect(server.seen[0]!.body['messages']).toHaveLength(2);
  });

  it('#24 #55 #57 #86 #73 the field-name zoo and totals such as 3.85: checked, asked again, then an error and no number', async () => {
    for (const reply of [
      '{"criteria_scores": {"a": 1}}',
      '{"score": 0.9}',
      '{"scores": {"a": 0.9, "b": 1}, "total": 3.85, "notes": ""}',
    ]) {
      const grade = await new Judge(scripted(reply)).grade(request);
      expect([grade.score, grade.attempts, grade.error?.code]).toEqual([null, 3, 'JUDGE_E_CONTRACT']);
    }
  });

  it('#55 #96 #385 sessions reused, files cut at 3000: one call per grading, a limit of ours, each cut in result and prompt', async () => {
    const model = scripted([1, 1]);
    const outputFiles = [{ path: 'a.md', text: 'x'.repeat(5000), why: null }];
    const judge = new Judge(model, { limits: { perFile: 4000, total: 10_000 } });
    expect((await judge.grade({ ...request, slots: { ...slots, outputFiles } })).cuts).toEqual([
      { what: 'a.md', shown: 4000, total: 5000 },
    ]);
    await judge.grade(request);
    expect(model.questions).toHaveLength(2);
    expect(model.questions[0]!.user).toContain('1000 of 5000 characters are not shown');
    expect(model.questions[1]!.user).not.toContain('a.md');
  });

  it('rubric weights are ignored: mean or weights by choice, both stored', async () => {
    expect(await new Judge(scripted([1, 0])).grade(request)).toMatchObject({
      score: 0.5,
      mean: 0.5,
      weighted: 0.9,
    });
    expect(await new Judge(scripted([1, 0]), { aggregate: 'rubric_weights' }).grade(request)).toMatchObject({
      score: 0.9,
      mean: 0.5,
    });
  });

  it('#365 #305 the wrong or a stale transcript: ours is the rollout’s own record (in a sandbox: eval-grader.integration.test.ts)', async () => {
    const [one, two] = [folderOf({}), folderOf({ 'x.trajectory.jsonl': '{"type":"message"}' })];
    await writeRecord(one, 'pi', [{ messages: [{ role: 'user', text: 'one' }], reply: [] }]);
    await writeRecord(two, 'pi', [{ messages: [{ role: 'user', text: 'two' }], reply: [] }]);
    expect(JSON.stringify(transcriptEvents(readEpisode(two)))).not.toContain('one');
    expect(transcriptEvents(readEpisode(two))[0]!.message.content).toEqual([{ type: 'text', text: 'two' }]);
  });

  it('#345 #31 #88 hidden prompts, contamination, deleted transcripts: the prompt is an event of every run (kept files: eval-grader.integration.test.ts)', async () => {
    const directory = folderOf({});
    await writeRecord(directory, 'openclaw', [
      { messages: [{ role: 'user', text: 'The task.' }], reply: [{ type: 'text', text: 'a' }] },
      { parent: 0, messages: [{ role: 'user', text: 'Continue.' }], reply: [{ type: 'text', text: 'b' }] },
    ]);
    const users = transcriptEvents(readEpisode(directory)).filter(({ message }) => message.role === 'user');
    expect(users.map(({ message }) => message.content)).toEqual([
      [{ type: 'text', text: 'The task.' }],
      [{ type: 'text', text: 'Continue.' }],
    ]);
  });

  it('#56 #329 sessions and new_session are ignored: they are read (played: packages/rollout, sessions.test.ts)', () => {
    const task = pinchbench('sessions: [{prompt: one}, {prompt: two, new_session: true}]\n');
    expect(task.sessions!.map(({ prompt, newSession }) => [prompt, newSession])).toEqual([
      ['one', false],
      ['two', true],
    ]);
  });

  it('#54 #86 #306 #307 tool and argument names differ: one name for graders, the original beside it (every harness: transcript.test.ts)', () => {
    for (const [name, args] of [
      ['read_file', { files: ['a'] }],
      ['Read', { file_path: 'a' }],
      ['read', { path: 'a' }],
    ] as const) {
      expect(canonicalCall('x', { name, arguments: args })).toEqual({
        name: 'read',
        arguments: { path: 'a' },
      });
    }
  });

  it('#276 #51 #174 live facts go stale, tasks are broken: marked, and scored with and without', () => {
    const tasks = [
      pinchbench('live: true\n'),
      { ...pinchbench('quarantined: wrong key\n'), id: 'b' },
      { ...pinchbench(), id: 'c' },
    ];
    expect(tasks.map(({ live, quarantined }) => [live, quarantined])).toEqual([
      [true, null],
      [false, 'wrong key'],
      [false, null],
    ]);
    expect(selectSuite(tasks, 'frozen').tasks.map(({ id }) => id)).toEqual(['c']);
    const summary = summaryOf([
      { id: 'a', scores: [0], live: true },
      { id: 'b', scores: [0], quarantined: 'x' },
      { id: 'c', scores: [1] },
    ]);
    expect([summary.all.meanScore!.estimate, summary.frozen.meanScore!.estimate]).toEqual([1 / 3, 1]);
  });

  it('#103 one model scores 65.7, 69.1 and 74.3: runs, spread and interval, and a warning without them', () => {
    const several = summaryOf([
      { id: 'a', scores: [0, 1, 1] },
      { id: 'b', scores: [0.5, 0.5, 0.5] },
    ]);
    expect(several.all.variance!.run).toBeGreaterThan(0);
    expect(describeEvaluation(several)).toMatch(/mean score \[95 %\][\s\S]*standard error/);
    const single = summaryOf([{ id: 'a', scores: [0.657] }]);
    expect(compareEvaluations([single]).warnings.join()).toContain('one run per task');
  });

  it('#342 #53 the judge costs dollars, parts of a suite are shown as the whole: cache, cost line, "partial" with the count', async () => {
    const cache = new JudgeCache(folderOf({}));
    const price = { input: 1, output: 5 };
    expect((await new Judge(scripted([1, 1]), { cache, price }).grade(request)).costUsd).toBeGreaterThan(0);
    expect((await new Judge(scripted([1, 1]), { cache, price }).grade(request)).costUsd).toBe(0);
    const part = summaryOf([{ id: 'a', scores: [1, 1] }], { complete: false });
    expect(part.complete).toBe(false);
    expect(describeEvaluation(part)).toMatch(
      /partial: no overall score of a suite \(partial: 1 tasks\)[\s\S]*judge \$0\.0040/,
    );
    const unread = summaryOf([{ id: 'a', scores: [1] }], {
      problems: [{ file: 'f', code: 'TASK_E_PROMPT', message: 'm' }],
    });
    expect(unread).toMatchObject({ complete: false, note: '1 tasks could not be read' });
  });

  it('graders run in the runner’s process, the agent can read task files: nothing of the grading is among the inputs (the sandbox: eval-grader.integration.test.ts)', () => {
    const out = join(folderOf({}), 't');
    materialise(pinchbench('workspace_files: [{path: in.txt, content: x}]\n'), out);
    expect(existsSync(join(out, 'input_files/in.txt'))).toBe(true);
    for (const name of ['reward', 'grade.py', 'eval.json', 'task_a.md'])
      expect(existsSync(join(out, 'input_files', name))).toBe(false);
  });

  it('port bugs alone move a score: a transcript is the same for every harness (native parity: eval-grader.integration.test.ts)', async () => {
    const of = async (harness: string, name: string, args: Record<string, unknown>) => {
      const directory = folderOf({});
      const reply = [{ type: 'tool_call' as const, id: 'i', name, arguments: args }];
      await writeRecord(directory, harness, [{ messages: [{ role: 'user', text: 'u' }], reply }]);
      return transcriptEvents(readEpisode(directory)).map(({ message }) =>
        message.content.map((part) => ({ ...part, extra: null })),
      );
    };
    expect(await of('claude-code', 'Read', { file_path: 'a' })).toEqual(
      await of('openclaw', 'read', { path: 'a' }),
    );
    expect(await of('claude-code', 'Bash', { command: 'ls' })).toEqual(
      await of('pi', 'bash', { command: 'ls' }),
    );
  });

  it('a shared gateway loses workspaces, child output blocks: OpenClaw’s gateway is a process of the rollout’s own sandbox', () => {
    const gateway = adapterByName('openclaw-gateway');
    const of = (rolloutId: string) =>
      gateway.command(
        { workspace: '/workspace', home: '/tmp/home', id: rolloutId } as SandboxSession,
        { version: '1', mounts: [], entry: '/opt/entry' },
        { prompt: 'p', maxTurns: 1 },
        { baseUrl: 'http://127.0.0.1:8080', key: 'k', rolloutId },
      );
    // Its launcher runs inside, so it ends with the sandbox, and no two rollouts have a conversation in common.
    expect(of('r1').argv.join(' ')).toContain('gateway-run.mjs');
    expect(of('r1').argv).not.toEqual(of('r2').argv);
  });

  it('a judge is told nothing of other runs: two gradings with the same material are the same prompt', () => {
    const prompt = () => judgePrompt({ ...slots, criteria: rubric.criteria }, { perFile: 10, total: 10 });
    expect(prompt()).toEqual(prompt());
  });
});
