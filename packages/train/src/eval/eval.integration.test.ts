import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readJson } from '@treeward/base';
import { adapters } from '@treeward/harness-adapters';
import { evaluate, runEval, scoresOf } from '../testing/evaluate.js';
import { root, runCli } from '../testing/run-cli.js';
import { runCommand } from '../testing/run-command.js';
import { tasksCommand } from './tasks-command.js';

const full = process.env['TREEWARD_TEST_FULL'] === '1';
const directory = mkdtempSync(join(tmpdir(), 'treeward-eval-'));
const at = (name: string): string => join(directory, name);
const SETS = ['base', 'hard'].map((name) => join(root, 'datasets/sets', name));
const idsOf = (set: string): string[] =>
  readdirSync(set)
    .filter((name) => existsSync(join(set, name, 'data_entry.json')))
    .sort();

const runTasks = (...args: string[]) => runCommand(tasksCommand(), args);

/** The perfect and the idle policy on task sets through a harness, by the real command that does all of it. */
async function expectPerfectAndNoop(sets: readonly string[], harness: string, out: string): Promise<void> {
  const { code, stdout, stderr } = await runCli([
    ...['eval', 'matrix', '--json', '--out', out, '--tasks', ...sets, '--harness', harness],
    ...['--policy', 'perfect=reference', 'noop=noop'],
  ]);
  expect(code, stderr).toBe(0);
  // Nothing between: the lowest and the highest score of a run are both 1, or both 0.
  expect((JSON.parse(stdout) as { rows: unknown[] }).rows).toEqual(
    sets.flatMap((set) => {
      const of = existsSync(join(set, 'tasks'))
        ? readdirSync(join(set, 'tasks')).filter((name) => name.endsWith('.md')).length
        : idsOf(set).length;
      const row = { tasks: basename(set), harness, graded: of, of };
      return [
        expect.objectContaining({ ...row, policy: 'perfect', lowest: 1, highest: 1 }) as unknown,
        expect.objectContaining({ ...row, policy: 'noop', lowest: 0, highest: 0 }) as unknown,
      ];
    }),
  );
}

beforeAll(async () => {
  const mini = await runTasks('mini', '--count', '2', '--out', at('mini'));
  const converted = await runTasks(
    'convert',
    at('mini'),
    '--to',
    'pinchbench',
    '--out',
    at('mini-pinchbench'),
  );
  expect([mini.code, converted.code]).toEqual([0, 0]);
});

describe('a scripted perfect policy scores 1 and a no-op policy 0', () => {
  it.each([
    ['clawgym-bench', 'mini'],
    ['pinchbench', 'mini-pinchbench'],
  ])('%s, in our own loop', async (format, tasks) => {
    const options = ['--harness', 'agent-loop', '--runs', '2'];
    const perfect = await evaluate(format, at(tasks), at(`${tasks}-1`), '--engine', 'reference', ...options);
    expect(scoresOf(perfect)).toEqual([1, 1, 1, 1]);
    expect(perfect).toMatchObject({
      complete: true,
      all: { coverage: 1, passRate: 1, meanScore: { low: 1, high: 1 } },
    });
  });

  it('the same again reads what is there, and runs what is missing or was cancelled', async () => {
    const [first, second, third] = readdirSync(at('mini-1/rollouts')).sort();
    const resultOf = (id: string | undefined): string => at(`mini-1/rollouts/${id}/result.json`);
    const kept = readFileSync(resultOf(first), 'utf8');
    rmSync(at(`mini-1/rollouts/${second}`), { recursive: true });
    const cancelled = {
      kind: 'cancelled',
      code: 'ROLLOUT_E_CANCELLED',
      message: 'the rollout was cancelled',
    };
    const stopped = { ...readJson<object>(resultOf(third)), reward: null, fault: cancelled };
    writeFileSync(resultOf(third), JSON.stringify(stopped));
    const options = ['--harness', 'agent-loop', '--engine', 'reference', '--runs', '2'];
    const again = await evaluate('clawgym-bench', at('mini'), at('mini-1'), ...options);
    expect(scoresOf(again)).toEqual([1, 1, 1, 1]);
    expect(readFileSync(resultOf(first), 'utf8')).toBe(kept);
    rmSync(at('mini-1/engine.log'));
    expect(scoresOf(await evaluate('clawgym-bench', at('mini'), at('mini-1'), ...options))).toEqual([
      1, 1, 1, 1,
    ]);
    expect(existsSync(at('mini-1/engine.log')), 'an engine started for nothing').toBe(false);
  });

  it('leaves result files that PinchBench’s tools read', async () => {
    const folder = at('mini-pinchbench-1/pinchbench');
    const names = readdirSync(folder);
    const results = readJson<{
      tasks: {
        task_id: string;
        grading: { mean: number; runs: { max_score: number }[] };
        frontmatter: { id: string };
      }[];
    }>(
      join(
        folder,
        names.find((name) => name.endsWith('_reference.json'))!,
      ),
    );
    expect(
      results.tasks.map(({ grading }) => [grading.mean, grading.runs.length, grading.runs[0]!.max_score]),
    ).toEqual([
      [1, 2, 1],
      [1, 2, 1],
    ]);
    expect(results.tasks.every(({ task_id: id, frontmatter }) => frontmatter.id === id)).toBe(true);
    const upload = readJson<{ total_score: number; max_score: number }>(
      join(
        folder,
        names.find((name) => name.endsWith('_upload.json'))!,
      ),
    );
    expect([upload.total_score, upload.max_score]).toEqual([2, 2]);
    const transcripts = join(
      folder,
      names.find((name) => name.endsWith('_transcripts'))!,
    );
    const [event] = readFileSync(join(transcripts, `${results.tasks[0]!.task_id}.jsonl`), 'utf8').split('\n');
    expect(JSON.parse(event!)).toMatchObject({ type: 'message', message: { role: 'user' } });
  });

  it('clawgym-bench, of a policy that does nothing', async () => {
    const idle = await evaluate(
      'clawgym-bench',
      at('mini'),
      at('mini-0'),
      ...['--harness', 'agent-loop', '--engine', 'noop', '--runs', '2'],
    );
    expect(scoresOf(idle)).toEqual([0, 0, 0, 0]);
  });

  it('pinchbench, of one: a sanity task that scores 0 stops the others, unless --no-fail-fast', async () => {
    const manifest = at('mini-pinchbench/tasks/manifest.yaml');
    const [first] = readdirSync(at('mini-pinchbench/tasks')).filter((name) => name.endsWith('.md'));
    const before = readFileSync(manifest, 'utf8');
    writeFileSync(manifest, before.replace('run_first: []', `run_first: [${basename(first!, '.md')}]`));
    try {
      const options = ['--harness', 'agent-loop', '--engine', 'noop'];
      const stopped = await evaluate('pinchbench', at('mini-pinchbench'), at('sanity'), ...options);
      expect(scoresOf(stopped)).toEqual([0]);
      expect(stopped).toMatchObject({
        complete: false,
        note: expect.stringContaining('scored 0, so nothing works') as unknown,
      });
      const all = [...options, '--no-fail-fast'];
      expect(scoresOf(await evaluate('pinchbench', at('mini-pinchbench'), at('sanity'), ...all))).toEqual([
        0, 0,
      ]);
    } finally {
      writeFileSync(manifest, before);
    }
  });

  const through = (harness: string) => adapters.find(({ name }) => name === harness)!;

  it('an own task of each set through claude-code, by the command for many cells', async (context) => {
    if (!(await through('claude-code').detect()))
      return context.skip('skipped: claude-code is not installed');
    for (const id of ['base/meeting-actions-1', 'hard/incident-report-1'])
      cpSync(join(root, 'datasets/sets', id), join(at('own'), basename(id)), { recursive: true });
    await expectPerfectAndNoop([at('own')], 'claude-code', at('own-out'));
  });

  it('--thinking: the harness asks for it, and a hosted model is asked', async (context) => {
    if (!(await through('pi').detect())) return context.skip('skipped: pi is not installed');
    const asked: unknown[] = [];
    const message = { role: 'assistant', content: 'Done.' };
    const reply = { id: 'c', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }] };
    const model = createServer((request, response) => {
      let body = '';
      request.on('data', (piece) => (body += piece));
      request.on('end', () => {
        asked.push((JSON.parse(body) as Record<string, unknown>)['reasoning_effort']);
        response.setHeader('content-type', 'application/json').end(JSON.stringify(reply));
      });
    });
    await once(model.listen(0, '127.0.0.1'), 'listening');
    try {
      const [first] = readdirSync(at('mini-pinchbench/tasks')).filter((name) => name.endsWith('.md'));
      const { code } = await runEval(
        ...['pinchbench', '--tasks', at('mini-pinchbench'), '--suite', basename(first!, '.md')],
        ...[
          '--harness',
          'pi',
          '--engine',
          `openai:m@http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`,
        ],
        ...['--thinking', 'high', '--out', at('thinking'), '--json'],
      );
      expect(code).toBe(0);
      expect(asked.length).toBeGreaterThan(0);
      expect(new Set(asked)).toEqual(new Set(['high']));
      const [run] = readdirSync(at('thinking/rollouts'));
      const record = readFileSync(join(at('thinking/rollouts'), run!, 'telemetry.ndjson'), 'utf8');
      expect(record).toMatch(/"requested":\{[^}]*"effort":"high"/);
    } finally {
      model.close();
    }
  });

  describe.runIf(full)('every own task through every adapter (two hours: TREEWARD_TEST_FULL=1)', () => {
    it.for(adapters.map(({ name }) => name))('%s', { timeout: 7_200_000 }, async (harness, context) => {
      if (!(await through(harness).detect())) return context.skip(`skipped: ${harness} is not installed`);
      await expectPerfectAndNoop([...SETS, at('mini'), at('mini-pinchbench')], harness, at(`all-${harness}`));
    });
  });
});

describe('the commands', () => {
  it('compare: one table, one picture, one page', async () => {
    const { code, stdout } = await runEval('compare', at('mini-0'), at('mini-1'), '--out', at('comparison'));
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /reference · agent-loop · clawgym\s+2\s+2\s+1\.000 \[1\.000, 1\.000\][\s\S]*\+1\.000/,
    );
    for (const kind of ['json', 'svg', 'html'])
      expect(existsSync(at(`comparison/comparison.${kind}`))).toBe(true);
  });

  it.each([
    // An evaluation of something else does not go into the same folder.
    ['mini-1', ['--harness', 'agent-loop', '--engine', 'noop'], 'RUN_E_DIFFERENT'],
    ['never', ['--harness', 'nobody'], 'HARNESS_E_UNKNOWN'],
    ['never', ['--harness', 'agent-loop', '--suite', 'none-such'], 'TASK_E_SUITE'],
    ['never', ['--harness', 'agent-loop', '--judge', 'oracle'], 'CLI_E_JUDGE'],
    ['never', ['--harness', 'agent-loop', '--runs', '0'], 'CLI_E_NUMBER'],
  ])('into %s, %j: an error before anything starts', async (out, more, code) => {
    const { error } = await runEval('clawgym-bench', '--tasks', at('mini'), '--out', at(out), ...more);
    expect(error).toMatchObject({ code });
    expect(existsSync(at('never/rollouts'))).toBe(false);
  });

  it('tasks check passes the mini tasks and fails a task whose checker gives points for nothing', async () => {
    const good = await runTasks('check', at('mini'), '--json');
    expect(good.code, good.stdout).toBe(0);
    const { tasks } = JSON.parse(good.stdout) as {
      tasks: { reference: number; untouched: number; wrong: { score: number }[] }[];
    };
    expect(tasks.map(({ reference, untouched }) => [reference, untouched])).toEqual([
      [1, 0],
      [1, 0],
    ]);
    expect(tasks.every(({ wrong }) => wrong.length >= 1 && wrong.every(({ score }) => score < 1))).toBe(true);
    const bad = at('bad');
    mkdirSync(join(bad, 'reward'), { recursive: true });
    writeFileSync(join(bad, 'data_entry.json'), JSON.stringify({ task_id: 'bad', user_query: 'x' }));
    writeFileSync(join(bad, 'reward/reward.sh'), 'echo \'{"free": 1}\'; echo 1\n');
    const report = await runTasks('check', bad, '--json');
    expect(report.code).toBe(1);
    expect(JSON.parse(report.stdout)).toMatchObject({
      tasks: [{ id: 'bad', ok: false, untouched: 1, vacuous: ['free'] }],
    });
  });
});

describe('several sessions through a real CLI', () => {
  it('a new session forgets the talk and keeps the files; the grader sees both talks', async (context) => {
    const harness = adapters.find(({ name }) => name === 'claude-code')!;
    if (!(await harness.detect())) return context.skip('skipped: claude-code is not installed');
    mkdirSync(at('talks/tasks'), { recursive: true });
    writeFileSync(
      at('talks/tasks/task_talk.md'),
      `---
id: task_talk
name: Talk
category: memory
grading_type: automated
timeout_seconds: 120
multi_session: true
sessions:
  - {id: store, prompt: Write note.txt.}
  - {id: more, prompt: Go on.}
  - {id: recall, new_session: true, prompt: Read note.txt.}
---
## Prompt

See the sessions.

## Automated Checks

\`\`\`python
import os

def grade(transcript, workspace_path):
    users = [i["text"] for e in transcript if e["message"]["role"] == "user" for i in e["message"]["content"]]
    tools = [i["name"] for e in transcript for i in e["message"]["content"] if i["type"] == "toolCall"]
    results = [i["text"] for e in transcript if e["message"]["role"] == "toolResult" for i in e["message"]["content"]]
    talks = [e["extra"]["conversation"] for e in transcript]
    return {
        "users": float([u for u in users if u in ("Write note.txt.", "Go on.", "Read note.txt.")] == ["Write note.txt.", "Go on.", "Read note.txt."]),
        "tools": float(tools == ["write", "read"]),
        "kept": float("purple" in results[-1]),
        "talks": float(sorted(set(talks)) == [0, 1]),
        "file": float(os.path.exists(os.path.join(workspace_path, "note.txt"))),
    }
\`\`\`
`,
    );
    const call = (name: string, args: Record<string, string>) => [
      { type: 'tool_call', id: 'x', name, arguments: args },
    ];
    const text = (said: string) => [{ type: 'text', text: said }];
    mkdirSync(at('talks/scripts'), { recursive: true });
    writeFileSync(
      at('talks/scripts/task_talk--r1.json'),
      JSON.stringify({
        replies: [
          call('Write', { file_path: '/workspace/note.txt', content: 'purple' }),
          text('Stored.'),
          text('Went on.'),
          call('Read', { file_path: '/workspace/note.txt' }),
          text('It says purple.'),
        ],
      }),
    );
    const summary = await evaluate(
      'pinchbench',
      at('talks'),
      at('talks-out'),
      '--harness',
      'claude-code',
      '--engine',
      `scripted:${at('talks/scripts')}`,
      '--context-length',
      '100000',
    );
    const grade = readJson<{ breakdown: Record<string, number> }>(
      at('talks-out/rollouts/task_talk--r1/grade.json'),
    );
    expect(grade.breakdown).toEqual({ users: 1, tools: 1, kept: 1, talks: 1, file: 1 });
    expect(scoresOf(summary)).toEqual([1]);
  });
});
