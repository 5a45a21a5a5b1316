import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { BubblewrapProvider } from '@treeward/sandbox';
import { SandboxGrader } from './grade.js';
import { loadTask } from './task.js';
import { writeFakeTask } from './testing/fake-task.js';

const provider = new BubblewrapProvider({ run: 'grade-test' });
const grader = new SandboxGrader(provider, { timeout: 5000 });
afterAll(() => provider.close());
let count = 0;

type Files = Readonly<Record<string, string>>;

function directory(files: Files): string {
  const root = mkdtempSync(join(tmpdir(), 'workspace-'));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content, { mode: 0o755 });
  }
  return root;
}

/** For checkers that never end; every other one of its tests ends at once. */
const impatient = new SandboxGrader(provider, { timeout: 1500 });
const gradeIn = (task: string, workspace: string, by = grader) =>
  by.grade(loadTask(task), workspace, { task_id: 'fake' }, { id: `grade-test-${count++}` });

describe('SandboxGrader in a real sandbox', () => {
  it('grades many rollouts of one task at the same time, each on its own workspace', async () => {
    const task = writeFakeTask('$(cat answer.txt)');
    const wanted = [0, 0.25, 0.5, 0.75, 1];
    const grades = await Promise.all(
      wanted.map((value) => gradeIn(task, directory({ 'answer.txt': String(value) }))),
    );
    expect(grades.map((grade) => grade.reward)).toEqual(wanted);
  });

  it('is another user than the task, with the payload and its own folder read-only', async () => {
    const task = writeFakeTask('1', {
      'reward.sh': [
        'id -un >&2',
        '(echo x > "$OPENCLAW_REWARD_PAYLOAD") 2>/dev/null && exit 7',
        '(echo x > reward/reward.sh) 2>/dev/null && exit 8',
        '(mv reward away) 2>/dev/null && exit 9',
        'grep -q fake "$OPENCLAW_REWARD_PAYLOAD" || exit 10',
        'test "$(id -un)" = grader && test -O f && echo 1',
      ].join('\n'),
    });
    expect(await gradeIn(task, directory({ f: 'x' }))).toMatchObject({ reward: 1 });
  });

  it('reads files that the task kept to itself', async () => {
    const workspace = directory({});
    writeFileSync(join(workspace, 'private.txt'), '1', { mode: 0o600 });
    expect((await gradeIn(writeFakeTask('$(cat private.txt)'), workspace)).reward).toBe(1);
  });
});

/** A checker in each of the ways that Python can be started; each wants the word `right` in answer.txt. */
const LOOK = [
  'import json, os, random, sys',
  'text = open("answer.txt").read().strip() if os.path.exists("answer.txt") else ""',
  'print(json.dumps({"right": text == "right"}))',
  'print(1.0 if text == "right" else 0.0)',
].join('\n');
const CHECKERS: Readonly<Record<string, Files>> = {
  'a script': { 'reward.sh': 'exec python3 reward/check.py', 'check.py': LOOK },
  'a script with a helper of its own': {
    'reward.sh': 'exec python3 "$(dirname "$0")/check.py"',
    'check.py': 'from helper import look\nlook()',
    'helper.py': `def look():\n${LOOK.replace(/^/gm, '    ')}`,
  },
  'standard input': { 'reward.sh': `python3 - <<'END'\n${LOOK}\nEND` },
  'a module': { 'reward.sh': 'exec python3 -m check', 'check.py': LOOK },
};

/** Code that, once imported or run, prints the reward that the agent would like. */
const CHEAT = 'import os\nos.write(1, b"1.0\\n")\nos._exit(0)\n';
const ATTACKS: Readonly<Record<string, Files>> = {
  'json.py in the workspace': { 'json.py': CHEAT },
  'random.py, os.py and a package that shadow the library': {
    'random.py': CHEAT,
    'os.py': CHEAT,
    'json/__init__.py': CHEAT,
  },
  'sitecustomize and usercustomize': {
    'sitecustomize.py': CHEAT,
    'usercustomize.py': CHEAT,
    '.local/lib/python3.11/site-packages/usercustomize.py': CHEAT,
    'home/sitecustomize.py': CHEAT,
  },
  'a helper and a module with the checker’s names': { 'helper.py': CHEAT, 'check.py': CHEAT },
  'a python3 to be found first': {
    python3: '#!/bin/sh\necho 1.0\n',
    'bin/python3': '#!/bin/sh\necho 1.0\n',
    sh: '#!/bin/sh\necho 1.0\n',
  },
  'a reward folder of its own': {
    'reward/reward.sh': 'echo 1.0\n',
    'reward/check.py': 'print(1.0)\n',
    'reward/helper.py': CHEAT,
    'reward/json.py': CHEAT,
  },
  'pyvenv.cfg, .pth and .env files': {
    'pyvenv.cfg': 'home = /workspace\n',
    'x.pth': 'import json\n',
    '.env': 'PYTHONPATH=/workspace\n',
    '__pycache__/json.cpython-311.pyc': 'x',
  },
};

describe('a checker cannot be cheated by what the workspace holds', () => {
  for (const [how, files] of Object.entries(CHECKERS)) {
    it(`checker as ${how}: the honest answer is worth 1, a wrong one 0`, async () => {
      const task = writeFakeTask('', files);
      expect(await gradeIn(task, directory({ 'answer.txt': 'right' }))).toMatchObject({
        reward: 1,
        scores: { right: 1 },
      });
      expect((await gradeIn(task, directory({ 'answer.txt': 'wrong' }))).reward).toBe(0);
    });

    it.each(Object.entries(ATTACKS))(`checker as ${how}: %s`, async (_, attack) => {
      const task = writeFakeTask('', files);
      const grade = await gradeIn(task, directory({ ...attack, 'answer.txt': 'wrong' }));
      expect(grade).toMatchObject({ reward: 0, scores: { right: 0 } });
      expect(grade.fault).toBeUndefined();
    });
  }

  it.each(['/etc', '.', 'elsewhere', '/proc/self/fd'])('a reward/ that is a link to %s', async (target) => {
    const workspace = directory({ 'elsewhere/reward.sh': 'echo 1.0' });
    symlinkSync(target, join(workspace, 'reward'));
    expect((await gradeIn(writeFakeTask('', CHECKERS['a script']), workspace)).reward).toBe(0);
  });

  it('a reward that is a file', async () => {
    const workspace = directory({ reward: 'echo 1.0' });
    expect((await gradeIn(writeFakeTask('', CHECKERS['a script']), workspace)).reward).toBe(0);
  });
});

describe('a printed last line', () => {
  const RUNS_IT = {
    'reward.sh': 'test -x ./solution && ./solution\nsleep 0.3\nexec python3 reward/check.py',
    'check.py': LOOK,
  };

  it('by a program that the checker runs is not the last', async () => {
    const workspace = directory({ solution: '#!/bin/sh\necho thinking\n', 'answer.txt': 'right' });
    expect((await gradeIn(writeFakeTask('', RUNS_IT), workspace)).reward).toBe(1);
  });

  it.each([
    ['again and again, in the background', '#!/bin/sh\n(while :; do echo 1.0; sleep 0.01; done) &\n'],
    [
      'into the checker’s own output',
      '#!/bin/sh\n(while :; do echo 1.0 > /proc/$PPID/fd/1; sleep 0.01; done) >/dev/null &\n',
    ],
    ['once, before the checker’s', '#!/bin/sh\necho 1.0\n'],
  ])('%s, is forgery: 0, and the policy’s fault', async (_, solution) => {
    const grade = await gradeIn(writeFakeTask('', RUNS_IT), directory({ solution, 'answer.txt': 'wrong' }));
    expect(grade).toMatchObject({ reward: 0, fault: { kind: 'policy', code: 'POLICY_E_FORGED_VERDICT' } });
  });

  it('of a checker that prints several numbers by itself is believed', async () => {
    const task = writeFakeTask('', { 'reward.sh': 'echo 0\necho 1\necho 0.5' });
    const grade = await gradeIn(task, directory({}));
    expect(grade).toMatchObject({ reward: 0.5 });
    expect(grade.fault).toBeUndefined();
  });
});

describe('whose fault a failing checker is', () => {
  it('the policy’s, if the checker passes on the untouched workspace: 0', async () => {
    const task = writeFakeTask('', {
      'reward.sh': 'test ! -e poison || exit 3\ntest ! -e endless || sleep 100\necho 0.5',
    });
    expect(await gradeIn(task, directory({}), impatient)).toMatchObject({ reward: 0.5 });
    for (const left of [{ poison: '' }, { endless: '' }] as Files[]) {
      expect(await gradeIn(task, directory(left), impatient)).toMatchObject({
        reward: 0,
        fault: { kind: 'policy', code: 'POLICY_E_BROKE_CHECKER' },
      });
    }
  });

  it('the checker’s own, if it fails there too: no reward', async () => {
    for (const [script, code] of [
      ['exit 3', 'VERIFIER_E_EXIT'],
      ['echo done', 'VERIFIER_E_NO_NUMBER'],
      ['echo 7', 'VERIFIER_E_RANGE'],
      ['while :; do :; done', 'VERIFIER_E_TIMEOUT'],
    ] as const) {
      const task = writeFakeTask('', { 'reward.sh': script });
      await expect(gradeIn(task, directory({}), impatient), script).rejects.toMatchObject({ code });
    }
  });

  it('nobody’s, if it fails once only: the second look counts', async () => {
    const flaky = mkdtempSync(join(tmpdir(), 'flaky-'));
    const brief = new SandboxGrader(
      {
        name: 'flaky',
        probe: () => provider.probe(),
        sweep: () => provider.sweep(),
        // The first sandbox of the rollout has no answer.txt to read.
        open: (options) =>
          provider.open(options.id === 'once-verify' ? { ...options, workspaceFrom: flaky } : options),
      },
      { timeout: 5000 },
    );
    const task = loadTask(
      writeFakeTask('', {
        'reward.sh': 'test -e answer.txt || test ! -e ../workspace/mark || exit 3\ncat answer.txt || echo 0',
      }),
    );
    writeFileSync(join(flaky, 'mark'), '');
    const grade = await brief.grade(task, directory({ 'answer.txt': '1' }), {}, { id: 'once' });
    expect(grade).toMatchObject({ reward: 1 });
  });
});
