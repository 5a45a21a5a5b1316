import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { RunFolder } from '@treeward/base';
import { loadTask } from '@treeward/rollout';
import { BubblewrapProvider } from '@treeward/sandbox';
import { loadClawgymDirectories } from '../formats/clawgym-directory.js';
import { loadHarbor } from '../formats/harbor.js';
import { materialise } from '../formats/materialise.js';
import { Judge } from '../judge/judge.js';
import { ScriptedJudge, type ScriptedReply } from '../judge/scripted-model.js';
import { loadPinchbenchTask } from '../pinchbench/task-file.js';
import { writeRecord, type Call } from '../testing/record.js';
import { clawgymFiles, codeOfAsync, folderOf, REFERENCE_ENTRY, taskFile } from '../testing/tasks.js';
import type { EvalTask } from '../types.js';
import { EvalGrader, gradingFiles, readGrade, type EvalGraderOptions } from './eval-grader.js';

const sandboxes = new BubblewrapProvider({ run: 'eval-grader-test' });
afterAll(() => sandboxes.close());

const CALLS: Call[] = [
  {
    messages: [{ role: 'user', text: 'Do it.' }],
    reply: [{ type: 'tool_call', id: 'c', name: 'Read', arguments: { file_path: 'in.txt' } }],
  },
  {
    parent: 0,
    messages: [{ role: 'tool', callId: 'c', text: 'x' }],
    reply: [{ type: 'text', text: 'The final word.' }],
  },
];

let count = 0;
/** Grades a workspace with these files as a run of `task`; what the grading left, and what it came to. */
async function grade(
  task: EvalTask,
  files: Record<string, string> = {},
  options: Partial<EvalGraderOptions> = {},
) {
  const out = new RunFolder(folderOf({}));
  const written = materialise(task, join(out.root, 'task'));
  const id = `eval-${process.pid}-${count++}`;
  await writeRecord(out.rollout(id).root, 'claude-code', CALLS);
  const grader = new EvalGrader({ sandboxes, folder: (name) => out.rollout(name), ...options });
  const workspace = folderOf(files);
  let thrown: string | null = null;
  let reward: number | null = null;
  thrown = await codeOfAsync(async () => {
    ({ reward } = await grader.grade(loadTask(written.directory), workspace, {}, { id }));
  });
  return {
    reward,
    thrown,
    record: readGrade(out.rollout(id))!,
    folder: out.rollout(id),
    grader,
    directory: written.directory,
    id,
    workspace,
  };
}

const pinchbench = (
  checks: string,
  meta = '',
  sections: Record<string, string> = {},
  type = 'automated',
): EvalTask => {
  const root = folderOf({
    'task_a.md': taskFile({ checks, meta, sections }).replace(
      'grading_type: automated',
      `grading_type: ${type}`,
    ),
  });
  const task = loadPinchbenchTask(join(root, 'task_a.md'), { assets: root });
  return { ...task, grading: { ...task.grading, timeoutMs: 4000 } };
};
const def = (body: string): string =>
  `import json, os, time, math\ndef grade(transcript, workspace_path):\n${body.replace(/^/gm, '    ')}`;

describe('graders of others, each with a stated behaviour', () => {
  it.each([
    ['crashes', def('raise ValueError("no")'), 'VERIFIER_E_EXIT', /no/],
    ['does not parse', 'def grade(transcript, workspace_path)\n  return', 'VERIFIER_E_EXIT', /SyntaxError/],
    ['hangs', def('time.sleep(60)\nreturn {"x": 1}'), 'VERIFIER_E_TIMEOUT', /1000/],
    ['kills itself', def('os.kill(os.getpid(), 9)'), 'VERIFIER_E_EXIT', /SIGKILL|137|9/],
    ['ends the process', def('os._exit(0)'), 'VERIFIER_E_NO_NUMBER', /not a number/],
    ['returns NaN', def('return {"a": 1.0, "b": float("nan")}'), 'VERIFIER_E_EXIT', /not a finite number: b/],
    ['returns infinity', def('return {"a": math.inf}'), 'VERIFIER_E_EXIT', /not a finite number: a/],
    ['returns no dict', def('return 0.7'), 'VERIFIER_E_EXIT', /returned float, not a dict/],
    ['returns no number', def('return {"a": "1.0"}'), 'VERIFIER_E_EXIT', /no numeric score/],
    ['scores 3.85 of 1', def('return {"a": 3.85}'), 'VERIFIER_E_RANGE', /outside/],
  ])('one that %s is not graded, never 0', async (_, checks, code, message) => {
    const task = pinchbench(checks);
    // Its time is waited out twice: on what was left, and on the untouched workspace.
    if (code === 'VERIFIER_E_TIMEOUT') task.grading.timeoutMs = 1000;
    const { reward, thrown, record } = await grade(task);
    expect([reward, thrown]).toEqual([null, 'VERIFIER_E_NOT_GRADED']);
    expect(record).toMatchObject({ score: null, error: { code } });
    expect(record.error!.message).toMatch(message);
  });

  it.each([
    ['prints rubbish', def('print("{\\"x\\": 0}\\n0.0\\nrubbish")\nreturn {"x": 1.0, "y": 0.5}'), 0.75],
    ['prints megabytes', def('print("x" * 3000000)\nreturn {"x": 1.0}'), 1],
    ['returns booleans and words beside numbers', def('return {"x": True, "y": False, "note": "fine"}'), 0.5],
    [
      'changes the workspace',
      def('open(os.path.join(workspace_path, "new"), "w").write("x")\nreturn {"x": 1.0}'),
      1,
    ],
  ])('one that %s is graded', async (_, checks, score) => {
    const { reward, workspace, folder } = await grade(pinchbench(checks));
    expect(reward).toBe(score);
    expect([
      existsSync(join(workspace, 'new')),
      existsSync(join(gradingFiles(folder).workspace, 'new')),
    ]).toEqual([false, false]);
  });

  it('complaint: graders exec’d in the runner process: they see no files of this machine, no network, no key', async () => {
    process.env['EVAL_TEST_SECRET'] = 'secret';
    const body = [
      'import socket',
      'def reaches():',
      '    try:',
      '        socket.create_connection(("1.1.1.1", 53), 1)',
      '        return True',
      '    except OSError:',
      '        return False',
      `seen = os.path.exists(${JSON.stringify(process.cwd())})`,
      'return {"files": float(not seen), "network": float(not reaches()), "environment": float("EVAL_TEST_SECRET" not in os.environ)}',
    ];
    expect((await grade(pinchbench(def(body.join('\n'))))).record.code!.scores).toEqual({
      files: 1,
      network: 1,
      environment: 1,
    });
  });
});

describe('both checker styles of ClawGym', () => {
  const clawgym = (check: string, entry = REFERENCE_ENTRY): EvalTask =>
    loadClawgymDirectories(folderOf(clawgymFiles('', { check, entry }))).tasks[0]!;
  const main =
    '\nif __name__ == "__main__":\n    import sys\n    print(json.dumps(grade([], sys.argv[1])))\n';

  it('grade() -> dict, through ClawGym’s own bash entry', async () => {
    const { reward, record } = await grade(
      clawgym(
        def('return {"a": float(os.path.exists(os.path.join(workspace_path, "out.txt"))), "b": 0}') + main,
      ),
      { 'out.txt': '' },
    );
    expect(reward).toBe(0.5);
    expect(record.code).toMatchObject({ scores: { a: 1, b: 0 }, rewardKey: null });
  });

  it('printing {"reward": x, <booleans>}: all values are averaged, as reward.sh does; `reward` is reported apart', async () => {
    const { reward, record } = await grade(
      clawgym('import json\nprint(json.dumps({"reward": 0.25, "a": True, "b": True}))\n'),
    );
    expect(reward).toBeCloseTo((0.25 + 1 + 1) / 3, 12);
    expect(record.code!.rewardKey).toBe(0.25);
  });

  it.each([
    ['crashes', 'echo no >&2; exit 3\n', 'VERIFIER_E_EXIT'],
    ['hangs', 'sleep 60\n', 'VERIFIER_E_TIMEOUT'],
    ['prints rubbish', 'echo "well done: 10 out of 10"\n', 'VERIFIER_E_NO_NUMBER'],
    ['prints nothing', 'true\n', 'VERIFIER_E_NO_NUMBER'],
    ['gives NaN', 'echo nan\n', 'VERIFIER_E_NO_NUMBER'],
    ['scores 3.85 of 1', 'echo 3.85\n', 'VERIFIER_E_RANGE'],
  ])('a reward.sh that %s is not graded, never 0', async (_, entry, code) => {
    const task = clawgym('', entry);
    task.grading.timeoutMs = 1000;
    const { reward, record } = await grade(task);
    expect(reward).toBeNull();
    expect(record).toMatchObject({ score: null, error: { code } });
  });

  it('the payload file has all five fields', async () => {
    const body =
      'payload = json.load(open(os.environ["OPENCLAW_REWARD_PAYLOAD"]))\nreturn {k: float(bool(payload.get(k))) for k in ("task_id", "user_query", "metadata", "final_message", "transcript")}';
    const { record } = await grade(clawgym(def(body) + main));
    expect(record.code!.scores).toEqual({
      task_id: 1,
      user_query: 1,
      metadata: 1,
      final_message: 1,
      transcript: 1,
    });
  });

  it('hybrid is 0.7 code and 0.3 rubric', async () => {
    const rules = [{ name: 'r', file_path: 'out.txt', scores: { '0': 'n', '0.5': 'h', '1': 'y' } }];
    const root = folderOf({
      ...clawgymFiles('', { check: 'print(1)', entry: 'echo "{\\"a\\": 1}"; echo 1\n' }),
      'reward/rubric.json': JSON.stringify({ rules }),
    });
    const task = loadClawgymDirectories(root).tasks[0]!;
    const with_ = (reply: ScriptedReply, options: Partial<EvalGraderOptions> = {}) =>
      grade(
        task,
        { 'out.txt': 'x' },
        { judge: new Judge(new ScriptedJudge({ '*': [reply] }), { attempts: 1 }), ...options },
      );
    expect((await with_(0.5)).reward).toBeCloseTo(0.85, 12);
    const lone = await with_('rubbish');
    expect(lone.record).toMatchObject({ score: 1, renormalised: true, error: { code: 'JUDGE_E_CONTRACT' } });
    expect((await with_('rubbish', { missingSide: 'zero' })).reward).toBeCloseTo(0.7, 12);
    expect((await grade(task, {}, { judge: new Judge(new ScriptedJudge({ '*': [1] })) })).reward).toBeCloseTo(
      0.7,
      12,
    );
  });
});

describe('PinchBench', () => {
  it('complaint (port bugs, #365): a grader that reads the transcript gets our record’s, in its form, and the same number as natively', async () => {
    const checks = def(
      [
        'names = [i["name"] for e in transcript if e["type"] == "message" for i in e["message"]["content"] if i["type"] == "toolCall"]',
        'paths = [i["arguments"].get("path") for e in transcript for i in e["message"]["content"] if i["type"] == "toolCall"]',
        'last = [i["text"] for e in transcript if e["message"]["role"] == "assistant" for i in e["message"]["content"] if i["type"] == "text"]',
        'stale = os.path.exists(os.path.join(workspace_path, "x.trajectory.jsonl"))',
        'return {"read": float(names == ["read"]), "path": float(paths == ["in.txt"]), "said": float(last == ["The final word."]), "half": 0.5, "stale": float(stale)}',
      ].join('\n'),
    );
    const { record, folder, workspace } = await grade(pinchbench(checks), {
      'x.trajectory.jsonl': '{"type":"message"}\n',
    });
    expect(record.breakdown).toEqual({ read: 1, path: 1, said: 1, half: 0.5, stale: 1 });
    // As the original does it: exec, call, mean of the numbers.
    const native = `import json, sys
space = {}
exec(open(sys.argv[1]).read(), space)
scores = space["grade"]([json.loads(line) for line in open(sys.argv[2])], sys.argv[3])
values = [float(v) for v in scores.values() if isinstance(v, (int, float))]
print(sum(values) / len(values))`;
    const code = join(folderOf({ 'grade.py': checks }), 'grade.py');
    const said = execFileSync('python3', ['-c', native, code, gradingFiles(folder).transcript, workspace], {
      encoding: 'utf8',
    });
    expect(record.score).toBeCloseTo(Number(said), 12);
  });

  it('complaint (#88): workspace and transcript are kept; (#365) what happens later to the workspace changes nothing', async () => {
    const run = await grade(
      pinchbench(def('return {"x": float(open(os.path.join(workspace_path, "a")).read())}')),
      { a: '0.25' },
    );
    writeFileSync(join(run.workspace, 'a'), '1');
    expect((await run.grader.regrade(run.directory, run.id))!.score).toBe(0.25);
    expect(readFileSync(gradingFiles(run.folder).transcript, 'utf8').trim().split('\n')).toHaveLength(4);
  });

  it('judged and hybrid by the weights of the file; a judge’s failure can be mended without another run', async () => {
    const meta = 'grading_weights: {automated: 0.4, llm_judge: 0.6}\n';
    const task = pinchbench(def('return {"x": 1.0}'), meta, {}, 'hybrid');
    const judge = new Judge(new ScriptedJudge({ task_a: ['no', 'no', 'no', [1, 0]] }));
    const run = await grade(task, {}, { judge });
    expect(run.record).toMatchObject({ renormalised: true, score: 1 });
    const again = (await run.grader.regrade(run.directory, run.id))!;
    expect(again.score).toBeCloseTo(0.4 * 1 + 0.6 * 0.5, 12);
    expect(again.breakdown).toEqual({ 'automated.x': 1, 'llm_judge.done': 1, 'llm_judge.well': 0 });
    const alone = pinchbench(def('return {"x": 1.0}'), '', {}, 'llm_judge');
    expect((await grade(alone, {}, { judge: new Judge(new ScriptedJudge({ '*': [1] })) })).reward).toBe(1);
    expect(await grade(alone)).toMatchObject({ reward: null, thrown: 'VERIFIER_E_NOT_GRADED' });
  });
});

describe('Harbor', () => {
  const harbor = (test: string): EvalTask =>
    loadHarbor(
      folderOf({ 't/task.toml': 'version = "1.0"', 't/instruction.md': 'x', 't/tests/test.sh': test }),
    ).tasks[0]!;

  it.each([
    [
      'reward.txt first',
      'echo 0.5 > /logs/verifier/reward.txt; echo \'{"a": 1}\' > /logs/verifier/reward.json',
      0.5,
    ],
    ['the mean of reward.json', 'echo \'{"a": 1, "b": 0}\' > /logs/verifier/reward.json', 0.5],
    ['files of the workspace', 'cat /app/score.txt > /logs/verifier/reward.txt', 0.75],
  ])('takes %s', async (_, test, reward) => {
    expect((await grade(harbor(test), { 'score.txt': '0.75' })).reward).toBe(reward);
  });

  it.each([
    ['write no reward', 'exit 0'],
    ['crash before they do', 'exit 3; echo 1 > /logs/verifier/reward.txt'],
    ['write rubbish', 'echo passed > /logs/verifier/reward.txt'],
    ['write NaN', 'echo nan > /logs/verifier/reward.txt'],
    ['write JSON without a number', 'echo \'{"a": "x"}\' > /logs/verifier/reward.json'],
  ])('tests that %s give no number', async (_, test) => {
    expect((await grade(harbor(test))).record).toMatchObject({
      score: null,
      error: { code: 'VERIFIER_E_EXIT' },
    });
  });

  it('tests that hang give no number', async () => {
    const task = harbor('sleep 60');
    task.grading.timeoutMs = 1000;
    expect((await grade(task)).record).toMatchObject({ score: null, error: { code: 'VERIFIER_E_TIMEOUT' } });
  });
});

describe('OfficeQA', () => {
  it('compares the final message', async () => {
    const base = pinchbench(def('return {"x": 1.0}'));
    const task: EvalTask = {
      ...base,
      format: 'officeqa',
      grading: { ...base.grading, answer: { truth: 'the final word.', tolerance: 0 } },
    };
    expect((await grade(task)).reward).toBe(1);
  });
});
