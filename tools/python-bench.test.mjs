import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { onPath } from './lib/paths.mjs';
import { PACKAGES, pythonBench, pythonBenchFolder } from './python-bench.mjs';
import { scratchFolder } from './testing/scratch.mjs';

const script = fileURLToPath(new URL('python-bench.mjs', import.meta.url));

/**
 * A stand-in for python3: `-m venv F` puts a copy of itself there, `-m pip install` notes what it is asked for (and fails for what
 * `refuse` names), `-c` prints the versions that were installed.
 */
function context(t, refuse = 'nothing') {
  const home = scratchFolder(t);
  const bin = join(home, 'bin');
  mkdirSync(bin);
  const python = join(bin, 'python3');
  writeFileSync(
    python,
    `#!${process.execPath}
const fs = require('node:fs');
const path = require('node:path');
const args = process.argv.slice(2);
const state = path.join(__dirname, '../installed.json');
if (args[1] === 'venv') {
  fs.mkdirSync(path.join(args[2], 'bin'), { recursive: true });
  fs.copyFileSync(__filename, path.join(args[2], 'bin/python'));
  fs.chmodSync(path.join(args[2], 'bin/python'), 0o755);
} else if (args[1] === 'pip') {
  const wanted = args.filter((arg) => arg.includes('=='));
  fs.appendFileSync(${JSON.stringify(join(home, 'asked'))}, wanted.join(' ') + '\\n');
  if (wanted.some((one) => one.includes(${JSON.stringify(refuse)}))) {
    console.error('ERROR: No matching distribution found for ' + wanted[0]);
    process.exit(1);
  }
  const old = fs.existsSync(state) ? JSON.parse(fs.readFileSync(state, 'utf8')) : {};
  fs.writeFileSync(state, JSON.stringify({ ...old, ...Object.fromEntries(wanted.map((one) => one.split('=='))) }));
} else console.log(fs.readFileSync(state, 'utf8'));
`,
  );
  chmodSync(python, 0o755);
  const said = [];
  return {
    home,
    said,
    asked: () => readFileSync(join(home, 'asked'), 'utf8').trim().split('\n'),
    given: {
      cache: join(home, 'cache'),
      env: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
      log: join(home, 'log'),
      say: (text) => said.push(text),
    },
  };
}

test('the environment is made once, with the CPU build of torch first and exact versions of the rest', async (t) => {
  const { given, asked, said } = context(t);
  const { status, python } = await pythonBench(given);
  assert.equal(status, 'done');
  assert.equal(python, join(pythonBenchFolder(given.cache), 'bin/python'));
  const { torch, ...others } = PACKAGES;
  assert.deepEqual(asked(), [
    `torch==${torch}+cpu`,
    Object.entries(others)
      .map(([name, version]) => `${name}==${version}`)
      .join(' '),
  ]);
  assert.match(said.join('\n'), /installing torch .*\n.*numpy==/);
  assert.equal((await pythonBench(given)).status, 'ready');
  assert.equal(asked().length, 2);
});

test('without a CPU build the other is taken, and that is said', async (t) => {
  const { given, asked, said } = context(t, '+cpu');
  assert.equal((await pythonBench(given)).status, 'done');
  assert.equal(asked()[1], `torch==${PACKAGES.torch}`);
  assert.match(said.join('\n'), /no torch .*\+cpu: taking the build with CUDA/);
});

test('an environment made by hand is adopted when the versions are right, replaced when not', async (t) => {
  const { given, asked, home } = context(t);
  const folder = pythonBenchFolder(given.cache);
  execFileSync(join(home, 'bin/python3'), ['-m', 'venv', folder]);
  const write = (versions) => writeFileSync(join(folder, 'installed.json'), JSON.stringify(versions));
  write({ ...PACKAGES, torch: `${PACKAGES.torch}+cpu` });
  assert.equal((await pythonBench(given)).status, 'adopted');
  assert.equal(existsSync(join(home, 'asked')), false);

  writeFileSync(join(folder, 'treeward.json'), JSON.stringify({ hash: 'of other versions' }));
  write({ ...PACKAGES, numpy: '1.0.0' });
  assert.equal((await pythonBench(given)).status, 'done');
  assert.equal(asked().length, 2);
});

test('two at once install once', async (t) => {
  const { given, asked } = context(t);
  const both = await Promise.all([pythonBench(given), pythonBench(given)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ['done', 'ready']);
  assert.equal(asked().length, 2);
});

test('without python3 the error says what needs it; what pip refuses is told with its log', async (t) => {
  const { given } = context(t, 'numpy');
  // Only node is left on the PATH.
  const none = { ...given, env: { ...given.env, PATH: scratchFolder(t) } };
  assert.equal(onPath('python3', none.env), undefined);
  await assert.rejects(pythonBench(none), {
    code: 'BOOT_E_NO_PYTHON',
    message: /python3 is not on the PATH/,
  });
  await assert.rejects(pythonBench(given), { code: 'BOOT_E_PIP', log: given.log });
});

test('--path prints the python of an environment that is there, else exit code 3', (t) => {
  const cache = scratchFolder(t);
  const path = () =>
    spawnSync(process.execPath, [script, '--path'], {
      env: { ...process.env, TREEWARD_CACHE: cache },
      encoding: 'utf8',
    });
  assert.equal(path().status, 3);
  assert.equal(spawnSync(process.execPath, [script, '--nonsense']).status, 2);
});
