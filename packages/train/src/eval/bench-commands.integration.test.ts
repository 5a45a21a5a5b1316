import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readJson } from '@treeward/base';
import { adapterByName } from '@treeward/harness-adapters';
import type { RolloutResult } from '@treeward/rollout';
import { buildImage, daemonUnavailable, startDaemon, type Daemon } from '@treeward/sandbox';
import { evaluate, runEval, scoresOf } from '../testing/evaluate.js';
import { startCli } from '../testing/run-cli.js';
import { runCommand } from '../testing/run-command.js';
import { evalCommand } from './eval-command.js';
import { COMMAND_OF } from './formats.js';
import { tasksCommand } from './tasks-command.js';

const full = process.env['TREEWARD_TEST_FULL'] === '1';
const directory = mkdtempSync(join(tmpdir(), 'treeward-bench-'));
const at = (name: string): string => join(directory, name);
const LOOP = ['--harness', 'agent-loop'];

function put(folder: string, files: Readonly<Record<string, string>>): string {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(at(`${folder}/${path}`)), { recursive: true });
    writeFileSync(at(`${folder}/${path}`), text);
  }
  return at(folder);
}
const say = (text: string) => [{ type: 'text', text }];
const call = (name: string, args: object) => [{ type: 'tool_call', id: 'x', name, arguments: args }];
/** An engine that says these in the first run of a task. */
const scripted = (task: string, ...replies: object[][]): string[] => [
  '--engine',
  `scripted:${put(`scripts-${task}`, { [`${task}--r1.json`]: JSON.stringify({ replies }) })}`,
  ...['--context-length', '100000'],
];

describe('every format by its command, on a small set of its own', () => {
  it('jobbench: a rubric counts only when all its criteria hold', async () => {
    const tasks = put('jobbench', {
      'easy/nurse/task1/task_folder/TASK_INSTRUCTIONS.txt': 'Write plan.md.\n',
      'easy/nurse/task1/task_folder/ward.csv': 'bed,name\n1,Ann\n',
      'easy/nurse/task1/RUBRICS.json': JSON.stringify([
        { rubric: 'All beds', criterion: ['bed 1', 'by name'], weight: 3 },
        { rubric: 'Short', criterion: 'under a page', weight: 1 },
      ]),
    });
    const judge = put('judge', { 'replies.json': JSON.stringify({ '*': [[1, 1, 0]] }) });
    const id = 'easy-nurse-task1';
    const write = call('write', { path: 'plan.md', content: 'Bed 1: Ann.' });
    const summary = await evaluate(
      ...(['jobbench', tasks, at('jobbench-out')] as const),
      ...[...LOOP, ...scripted(id, write, say('Done.')), '--judge', `scripted:${judge}/replies.json`],
    );
    expect(summary.tasks.map((task) => [task.id, task.category])).toEqual([[id, 'nurse']]);
    expect(scoresOf(summary)).toEqual([0.75]);
    const run = at(`jobbench-out/rollouts/${id}--r1`);
    expect(readJson(join(run, 'grade.json'))).toMatchObject({ type: 'judge', judge: { score: 0.75 } });
  });

  it('officeqa: the last message is compared with the answer', async () => {
    const tasks = put('officeqa', {
      'officeqa.csv':
        'uid,question,answer,source_docs,source_files,difficulty\nq1,How many?,"1,234",d,a.txt,easy\nq2,And then?,5,d,a.txt,hard\n',
      'corpus/a.txt': 'There were 1,234.',
    });
    const right = say('Counted. <FINAL_ANSWER>1234</FINAL_ANSWER>');
    const summary = await evaluate(
      ...(['officeqa', tasks, at('officeqa-out')] as const),
      ...[...LOOP, ...scripted('q1', call('read', { path: 'documents/a.txt' }), right)],
    );
    // To the second question it says "Done.".
    expect(scoresOf(summary)).toEqual([1, 0]);
    expect(summary.categories.map(({ name }) => name)).toEqual(['easy', 'hard']);
    expect(summary.set.licence).toContain('CC-BY-SA');
  });

  it('harbor: files of the image, tests that write a reward', async () => {
    const task = (id: string): Record<string, string> => ({
      [`${id}/task.toml`]: 'version = "1.0"\n[verifier]\ntimeout_sec = 30.0\n',
      [`${id}/instruction.md`]: 'Copy /app/in.txt to /app/out.txt.\n',
      [`${id}/environment/Dockerfile`]: 'FROM debian\nWORKDIR /app\nCOPY in.txt .\n',
      [`${id}/environment/in.txt`]: 'wanted\n',
      [`${id}/tests/test.sh`]:
        'cmp /app/in.txt /app/out.txt && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n',
    });
    const tasks = put('harbor', { ...task('done'), ...task('idle') });
    const copy = call('exec', { command: 'cp in.txt out.txt' });
    const options = [...LOOP, ...scripted('done', copy, say('Done.'))];
    expect(scoresOf(await evaluate('harbor', tasks, at('harbor-out'), ...options))).toEqual([1, 0]);
  });

  it.each([...Object.values(COMMAND_OF), 'compare', 'matrix'])('%s --help has an example', (name) => {
    const command = evalCommand().commands.find((each) => each.name() === name)!;
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    expect(help).toMatch(new RegExp(`Examples?:\\n +treeward eval ${name} `));
  });
});

describe('--hub', () => {
  const row = {
    prompt: 'Write out.txt.',
    hook_code: 'python3 reward/test.py .',
    input_files: [
      { file_path: 'reward/test.py', content: 'import os\nprint(float(os.path.exists("out.txt")))' },
    ],
    id: 'r1',
  };
  const asked: string[] = [];
  /** The hub's API for one data set. */
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    if (request.url === '/api/datasets/own/set/revision/main')
      response.end(
        JSON.stringify({
          sha: 'abc',
          siblings: [{ rfilename: 'data.jsonl' }],
          cardData: { license: 'cc-by-4.0' },
        }),
      );
    else if (request.url === '/datasets/own/set/resolve/abc/data.jsonl') response.end(JSON.stringify(row));
    else response.writeHead(404).end();
  });
  beforeAll(() => new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready)));
  afterAll(() => {
    server.close();
    vi.unstubAllEnvs();
  });
  const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const run = (name: string) =>
    runEval(
      ...['clawgym-bench', '--hub', name, '--hub-url', url(), '--out', at('hub-out'), '--json'],
      ...[...LOOP, '--engine', 'noop'],
    );

  it('fetches a set, says its licence and keeps it in the summary; again, it fetches nothing', async () => {
    vi.stubEnv('TREEWARD_CACHE', at('cache'));
    const said: string[] = [];
    const stderr = vi
      .spyOn(process.stderr, 'write')
      .mockImplementation((text) => said.push(String(text)) > 0);
    const { code, stdout } = await run('own/set').finally(() => stderr.mockRestore());
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      set: { name: 'own/set', version: 'abc', licence: 'cc-by-4.0' },
      tasks: [{ id: 'r1', runs: [{ score: 0 }] }],
    });
    expect(said.join('')).toContain('own/set at abc: licence cc-by-4.0');
    expect((await run('own/set')).code).toBe(0);
    expect(asked.filter((path) => path.endsWith('.jsonl'))).toHaveLength(1);
    expect(readdirSync(at('cache/datasets'))).toEqual(['own+set']);
  });

  it('a set that is not there is HUB_E_MISSING', async () => {
    expect((await run('own/none')).error).toMatchObject({ code: 'HUB_E_MISSING' });
  });
});

describe.runIf(full)('killed in the middle (20 s: TREEWARD_TEST_FULL=1)', () => {
  it('goes on where it was: what was finished is not run again', { timeout: 300_000 }, async () => {
    await runCommand(tasksCommand(), ['mini', '--count', '6', '--out', at('mini')]);
    const args = [
      ...['clawgym-bench', '--tasks', at('mini'), '--out', at('killed'), '--json'],
      ...[...LOOP, '--engine', 'reference', '--runs', '3'],
    ];
    const rollouts = at('killed/rollouts');
    const finished = (): string[] =>
      existsSync(rollouts)
        ? readdirSync(rollouts).filter((name) => existsSync(join(rollouts, name, 'result.json')))
        : [];
    const first = startCli(['eval', ...args]);
    while (finished().length < 3 && first.child.exitCode === null) await delay(20);
    first.child.kill('SIGKILL');
    expect((await first.done).signal).toBe('SIGKILL');
    const kept = new Map(
      finished().map((name) => [name, readFileSync(join(rollouts, name, 'result.json'), 'utf8')]),
    );
    expect(kept.size).toBeLessThan(18);
    const { code, stdout } = await runEval(...args);
    expect(code).toBe(0);
    expect(scoresOf(JSON.parse(stdout) as Awaited<ReturnType<typeof evaluate>>)).toEqual(
      new Array(18).fill(1),
    );
    for (const [name, text] of kept)
      expect(readFileSync(join(rollouts, name, 'result.json'), 'utf8')).toBe(text);
  });
});

const unavailable = full ? daemonUnavailable() : 'a minute: TREEWARD_TEST_FULL=1';
if (unavailable) console.warn(`skipped: harnesses in the images of Harbor tasks: ${unavailable}`);

describe.skipIf(unavailable !== null)(
  'harnesses in the images of Harbor tasks, on a daemon of its own',
  () => {
    let daemon: Daemon;
    let image: string;
    beforeAll(async () => {
      daemon = await startDaemon();
      image = await buildImage({ socket: daemon.socket, say: (text) => console.info(text) });
      vi.stubEnv('DOCKER_HOST', `unix://${daemon.socket}`);
    }, 400_000);
    afterAll(async () => {
      vi.unstubAllEnvs();
      await daemon?.stop();
    });

    it.for(['agent-loop', 'claude-code', 'codex', 'pi'])(
      '%s works with what only the image has',
      async (name, context) => {
        const adapter = adapterByName(name);
        if (!(await adapter.detect())) return context.skip(`skipped: ${name} is not installed`);
        const tasks = put(`images-${name}`, {
          't/task.toml': 'version = "1.0"\n',
          't/instruction.md': 'Copy the tool of this machine to /app/out.txt.\n',
          't/environment/Dockerfile': `FROM ${image}\nWORKDIR /app\nCOPY tool /opt/tool\n`,
          't/environment/tool': 'of the image\n',
          't/tests/test.sh':
            'cmp /opt/tool /app/out.txt && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n',
        });
        const { tool, arguments: names } = adapter.tools.exec;
        const copy = call(tool, { [names[0]!]: 'cp /opt/tool out.txt' });
        const summary = await evaluate(
          ...([
            'harbor',
            tasks,
            at(`images-${name}-out`),
            '--harness',
            name,
            '--provider',
            'docker',
          ] as const),
          ...scripted('t', copy, say('Done.')),
        );
        expect(scoresOf(summary)).toEqual([1]);
        const result = readJson<RolloutResult>(at(`images-${name}-out/rollouts/t--r1/result.json`));
        expect(result.sandbox).toMatchObject({ provider: 'docker', tier: 'full' });
        expect(result.sandbox!.image).not.toBe(image);
      },
    );
  },
);
