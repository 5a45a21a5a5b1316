import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { writeJsonAtomic } from '@treeward/base';
import { adapterByName, toolCall } from '@treeward/harness-adapters';
import { runCommand } from '../testing/run-command.js';
import { rolloutCommand } from './rollout-command.js';

const work = mkdtempSync(join(tmpdir(), 'tw-rollout-'));
afterAll(() => rmSync(work, { recursive: true, force: true }));
const full = process.env['TREEWARD_TEST_FULL'] === '1';

function task(id: string, files: Readonly<Record<string, string>>, entry: object): string {
  const directory = join(work, id);
  writeJsonAtomic(join(directory, 'data_entry.json'), { task_id: id, ...entry });
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
  return directory;
}

async function play(directory: string, id: string, harness: string, commands: readonly string[][]) {
  const { exec } = adapterByName(harness).tools;
  const replies = commands.flatMap((session) => [
    ...session.map((command) => [{ type: 'tool_call', id: 'c', ...toolCall(exec, [command]) }]),
    [{ type: 'text', text: 'Done.' }],
  ]);
  writeJsonAtomic(join(work, 'scripts', `${id}-${harness}-0.json`), { replies });
  const out = join(work, 'out');
  const { code, stdout, error } = await runCommand(rolloutCommand(), [
    ...['--task', directory, '--harness', harness, '--out', out],
    ...['--engine', `scripted:${join(work, 'scripts')}`, '--json'],
  ]);
  expect([code, error]).toEqual([0, null]);
  return JSON.parse(stdout) as { reward: number; calls: number; fault: unknown; folder: string };
}

it('runs a task as ClawGym publishes it: bash, check.py, the workspace of another machine by name', async () => {
  const directory = task(
    'published',
    {
      'reward/reward.sh': `#!/usr/bin/env bash
set -euo pipefail
cd /root/.openclaw/workspace
python3 reward/check.py "$(pwd)" > /tmp/scores.json
python3 - <<'PY'
import json
data = json.load(open("/tmp/scores.json"))
print(sum(float(v) for v in data.values()) / len(data))
PY
`,
      'reward/check.py': `import json, os, sys
text = open(os.path.join(sys.argv[1], "answer.txt")).read()
print(json.dumps({"right": float(text == "right"), "there": 1.0}))
`,
      'input_files/note.txt': 'half',
    },
    {
      user_query: 'Write right to ~/.openclaw/workspace/answer.txt.',
      input_mount_dir: '~/.openclaw/workspace',
    },
  );
  const command = 'printf "%s" "$(cat note.txt)" > answer.txt';
  const result = await play(directory, 'published', 'agent-loop', [[command]]);
  expect(result).toMatchObject({ reward: 0.5, fault: null, calls: 2 });
  expect(readFileSync(join(result.folder, 'telemetry.ndjson'), 'utf8')).toContain('/workspace/answer.txt');
});

it('plays the sessions of a task in one sandbox, the second in the same conversation', async (context) => {
  if (!full) return context.skip('skipped: starts Claude Code twice; TREEWARD_TEST_FULL=1 runs it');
  if (!(await adapterByName('claude-code').detect()))
    return context.skip('skipped: claude-code not installed');
  const directory = task(
    'sessions',
    { 'reward/reward.sh': 'test "$(cat a.txt)" = onetwo && echo 1 || echo 0\n' },
    { user_query: 'Write one.', sessions: [{ prompt: 'Append two.' }] },
  );
  const result = await play(directory, 'sessions', 'claude-code', [
    ['printf one > a.txt'],
    ['printf two >> a.txt'],
  ]);
  expect(result).toMatchObject({ reward: 1, fault: null, calls: 4 });
});
