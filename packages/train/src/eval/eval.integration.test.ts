import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readJson } from '@treeward/base';
import type { EvaluationSummary } from '@treeward/eval';
import { adapters } from '@treeward/harness-adapters';
import { root, runCli } from '../testing/run-cli.js';

const full = process.env['TREEWARD_TEST_FULL'] === '1';
const directory = mkdtempSync(join(tmpdir(), 'treeward-eval-'));
const at = (name: string): string => join(directory, name);
const SETS = ['base', 'hard']
  .map((name) => join(root, 'datasets/sets', name))
  .filter((path) => existsSync(path));

/** Runs an evaluation to its end. */
async function evaluate(
  format: string,
  tasks: string,
  out: string,
  ...more: string[]
): Promise<EvaluationSummary> {
  const { code, stdout, stderr } = await runCli([
    'eval',
    format,
    '--tasks',
    tasks,
    '--out',
    out,
    '--json',
    ...more,
  ]);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as EvaluationSummary;
}

const scoresOf = ({ tasks }: EvaluationSummary): (number | null)[] =>
  tasks.flatMap(({ runs }) => runs.map(({ score }) => score));

beforeAll(async () => {
  const mini = await runCli(['tasks', 'mini', '--count', '2', '--out', at('mini')]);
  const converted = await runCli([
    'tasks',
    'convert',
    at('mini'),
    '--to',
    'pinchbench',
    '--out',
    at('mini-pinchbench'),
  ]);
  expect([mini.code, converted.code], mini.stderr + converted.stderr).toEqual([0, 0]);
});

describe('a scripted perfect policy scores 1 and a no-op policy 0', () => {
  it.each([
    ['clawgym-bench', 'mini'],
    ['pinchbench', 'mini-pinchbench'],
  ])('%s, in our own loop; the same again reads what is there', async (format, tasks) => {
    const options = ['--harness', 'agent-loop', '--runs', '2'];
    const perfect = await evaluate(format, at(tasks), at(`${tasks}-1`), '--engine', 'reference', ...options);
    expect(scoresOf(perfect)).toEqual([1, 1, 1, 1]);
    expect(perfect).toMatchObject({
      complete: true,
      all: { coverage: 1, passRate: 1, meanScore: { low: 1, high: 1 } },
    });
    const idle = await evaluate(format, at(tasks), at(`${tasks}-0`), '--engine', 'noop', ...options);
    expect(scoresOf(idle)).toEqual([0, 0, 0, 0]);

    const [first] = readdirSync(at(`${tasks}-1/rollouts`)).sort();
    const kept = readFileSync(at(`${tasks}-1/rollouts/${first}/result.json`), 'utf8');
    rmSync(at(`${tasks}-1/rollouts/${readdirSync(at(`${tasks}-1/rollouts`)).sort()[1]}`), {
      recursive: true,
    });
    const again = await evaluate(format, at(tasks), at(`${tasks}-1`), '--engine', 'reference', ...options);
    expect(scoresOf(again)).toEqual([1, 1, 1, 1]);
    expect(readFileSync(at(`${tasks}-1/rollouts/${first}/result.json`), 'utf8')).toBe(kept);
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

  it.for(adapters.map(({ name }) => name).filter((name) => name !== 'agent-loop'))(
    'both formats through %s',
    async (harness, context) => {
      const adapter = adapters.find(({ name }) => name === harness)!;
      if (!(await adapter.detect())) return context.skip(`skipped: ${harness} is not installed`);
      if (harness !== 'claude-code' && !full)
        return context.skip(`skipped: ${harness} starts slowly; TREEWARD_TEST_FULL=1 runs it`);
      for (const [format, tasks] of [
        ['clawgym-bench', at('mini')],
        ['pinchbench', at('mini-pinchbench')],
      ] as const) {
        const options = [
          '--harness',
          harness,
          '--suite',
          readdirSync(at('mini'))
            .filter((name) => !name.endsWith('.json'))
            .slice(0, 1)
            .map((id) => (format === 'pinchbench' ? `task_${id}` : id))
            .join(),
        ];
        const perfect = await evaluate(
          format,
          tasks,
          at(`${harness}-${format}-1`),
          '--engine',
          'reference',
          ...options,
        );
        expect(scoresOf(perfect)).toEqual([1]);
        expect(
          scoresOf(
            await evaluate(format, tasks, at(`${harness}-${format}-0`), '--engine', 'noop', ...options),
          ),
        ).toEqual([0]);
      }
    },
  );

  describe.runIf(full && SETS.length > 0)('every own task (minutes: TREEWARD_TEST_FULL=1)', () => {
    it.each(SETS)(
      '%s',
      async (set) => {
        const options = ['--harness', 'agent-loop'];
        const perfect = await evaluate(
          'clawgym-bench',
          set,
          at(`set-${set.split('/').at(-1)}-1`),
          '--engine',
          'reference',
          ...options,
        );
        expect(perfect.all.meanScore).toMatchObject({ low: 1, high: 1 });
        const idle = await evaluate(
          'clawgym-bench',
          set,
          at(`set-${set.split('/').at(-1)}-0`),
          '--engine',
          'noop',
          ...options,
        );
        expect(idle.all.meanScore).toMatchObject({ low: 0, high: 0 });
      },
      900_000,
    );
  });
});

describe('the commands', () => {
  it('compare: one table, one picture, one page', async () => {
    const { code, stdout } = await runCli([
      'eval',
      'compare',
      at('mini-0'),
      at('mini-1'),
      '--out',
      at('comparison'),
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /reference · agent-loop · clawgym\s+2\s+2\s+1\.000 \[1\.000, 1\.000\][\s\S]*\+1\.000/,
    );
    for (const kind of ['json', 'svg', 'html'])
      expect(existsSync(at(`comparison/comparison.${kind}`))).toBe(true);
  });

  it('an evaluation of something else does not go into the same folder', async () => {
    const { code, stderr } = await runCli([
      'eval',
      'clawgym-bench',
      '--tasks',
      at('mini'),
      '--harness',
      'agent-loop',
      '--engine',
      'noop',
      '--out',
      at('mini-1'),
    ]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('RUN_E_DIFFERENT')]);
  });

  it.each([
    [['--harness', 'nobody'], 'HARNESS_E_UNKNOWN'],
    [['--harness', 'agent-loop', '--suite', 'none-such'], 'TASK_E_SUITE'],
    [['--harness', 'agent-loop', '--judge', 'oracle'], 'CLI_E_JUDGE'],
    [['--harness', 'agent-loop', '--runs', '0'], 'CLI_E_NUMBER'],
  ])('%j is a usage error', async (more, error) => {
    const { code, stderr } = await runCli([
      'eval',
      'clawgym-bench',
      '--tasks',
      at('mini'),
      '--out',
      at('never'),
      ...more,
    ]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(error)]);
    expect(existsSync(at('never/rollouts'))).toBe(false);
  });

  it('tasks check passes the mini tasks and fails a task whose checker gives points for nothing', async () => {
    const good = await runCli(['tasks', 'check', at('mini'), '--json']);
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
    const report = await runCli(['tasks', 'check', bad, '--json']);
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
