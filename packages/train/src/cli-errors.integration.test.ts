import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cli, runCli } from './testing/run-cli.js';

const scratch = (): string => mkdtempSync(join(tmpdir(), 'cli-'));
const sample = 'datasets/tasks/sample/config-1';

function brokenTask(checker: string | null): string {
  const directory = scratch();
  writeFileSync(join(directory, 'data_entry.json'), '{"task_id":"t","user_query":"Do it."}');
  if (checker !== null) {
    mkdirSync(join(directory, 'reward'));
    writeFileSync(join(directory, 'reward', 'reward.sh'), checker);
  }
  return directory;
}

const emptyScripts = (): string => `scripted:${scratch()}`;

it('a reader that leaves early (`treeward … | head -1`) is no error', async () => {
  const child = spawn('/bin/sh', ['-c', '"$0" "$1" train --help | head -1', process.execPath, cli]);
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += String(chunk)));
  await once(child, 'close');
  expect(stderr).toBe('');
});

describe('treeward: bad input', () => {
  it('an unknown config key is named, exit 2, nothing written', async () => {
    const directory = scratch();
    const config = join(directory, 'c.toml');
    writeFileSync(config, '[rollouts]\ngroup_sise = 4\n');
    const run = join(directory, 'run');
    const { code, stderr, stdout } = await runCli(['train', '@', config, '--run-dir', run, '--json']);
    expect(code).toBe(2);
    expect(stderr).toContain('CONFIG_E_KEY');
    expect(stderr).toContain('rollouts.group_sise');
    expect(stderr).toContain(config);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: 'CONFIG_E_KEY', data: { field: 'rollouts.group_sise' } },
    });
    expect(existsSync(run)).toBe(false);
  });

  it.each([
    [['train', '--nonsense'], 2, /unknown option/],
    [['train', 'mixed.toml'], 2, /CLI_E_ARGUMENT[^]*@ mixed\.toml/],
    [['train', '--resume', '--run-dir', '/nowhere/at/all'], 2, /RUN_E_NOTHING/],
    [['rollout', '--task', sample], 2, /required option/],
    [['rollout', '--task', sample, '--harness', 'no-such', '--out', '/tmp/x'], 2, /HARNESS_E_UNKNOWN/],
    [
      ['rollout', '--task', sample, '--harness', 'agent-loop', '--engine', 'gpt', '--out', '/tmp/x'],
      2,
      /CLI_E_ENGINE/,
    ],
    [['recover', '/nowhere/at/all'], 2, /CLI_E_NO_RECORD/],
    [['serve', 'datasets/cold-start', '--sampling', 'whatever'], 2, /Allowed choices are config, request/],
    [
      ['record', '--model', 'x', '--upstream', 'openai', '--upstream-url', 'not-a-url', '--', 'pi'],
      2,
      /CLI_E_UPSTREAM[^]*not a URL/,
    ],
    [['sing'], 2, /unknown command/],
  ] as [string[], number, RegExp][])('%j ends with %i and says why', async (args, expected, message) => {
    const { code, stderr } = await runCli(args);
    expect(stderr).toMatch(message);
    expect(code).toBe(expected);
  });

  it.each([
    [
      ['rollout', '--task', sample, '--harness', 'agent-loop', '--engine', 'anthropic:x'],
      /ENGINE_E_CONFIG.*ANTHROPIC_API_KEY/,
    ],
    [['train', '--set', 'policy.template=huggingface'], /TEMPLATE_E_FILE.*added_tokens/],
  ])(
    '%j cannot start: it says what its process said, and ends',
    async (args, message) => {
      const where = args[0] === 'train' ? '--run-dir' : '--out';
      const { code, stderr } = await runCli([...args, where, scratch()], { ANTHROPIC_API_KEY: '' });
      expect(code).toBe(1);
      expect(stderr).toMatch(message);
    },
    60_000,
  );

  it('an engine that cannot say what it sampled is refused for training, with every reason', async () => {
    const settings = ['engine.kind=anthropic', 'engine.model=m', 'eval.tasks=0'].flatMap((text) => [
      '--set',
      text,
    ]);
    const { code, stderr } = await runCli(['train', '--run-dir', scratch(), ...settings], {
      ANTHROPIC_API_KEY: 'x',
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/ENGINE_E_UNTRAINABLE.*no token ids.*no usable log-probabilities/);
  }, 60_000);

  it.each(['train', 'rollout', 'record', 'serve', 'recover', 'doctor', 'cold-start'])(
    '%s --help shows examples',
    async (command) => {
      const { code, stdout } = await runCli([command, '--help']);
      expect(code).toBe(0);
      expect(stdout).toContain('Examples:');
    },
  );

  it('a harness that is not installed: its own code, how to install it, nothing written', async () => {
    const out = join(scratch(), 'out');
    const { code, stderr } = await runCli(
      ['rollout', '--task', sample, '--harness', 'claude-code', '--engine', emptyScripts(), '--out', out],
      { TREEWARD_CACHE: scratch() },
    );
    expect(code).toBe(1);
    expect(stderr).toContain('HARNESS_E_MISSING');
    expect(stderr).toContain('→');
    expect(existsSync(out)).toBe(false);
  });

  it('a broken task folder: its own code, the file, nothing written', async () => {
    const out = join(scratch(), 'out');
    const task = brokenTask(null);
    const { code, stderr } = await runCli([
      'rollout',
      '--task',
      task,
      '--harness',
      'agent-loop',
      '--engine',
      emptyScripts(),
      '--out',
      out,
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain('TASK_E_REWARD');
    expect(stderr).toContain(task);
    expect(existsSync(out)).toBe(false);
  });

  it('a checker without a number: no reward, its own code, the record complete', async () => {
    const out = join(scratch(), 'out');
    const args = [
      'rollout',
      '--task',
      brokenTask('echo fine\n'),
      '--harness',
      'agent-loop',
      '--engine',
      emptyScripts(),
      '--out',
      out,
      '--json',
    ];
    const { code, stdout, stderr } = await runCli(args);
    expect(code, stderr).toBe(1);
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ reward: null, fault: { kind: 'verifier', code: 'VERIFIER_E_NO_NUMBER' } });
    expect(readdirSync(result.folder)).toEqual(
      expect.arrayContaining(['result.json', 'telemetry.ndjson', 'tokens.bin', 'workspace.diff']),
    );
    expect(result.tree.verdict.kind).toBe('rejected');
  });
});
