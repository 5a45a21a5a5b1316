import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { onPath } from '../lib/paths.mjs';
import { scratchFolder } from '../testing/scratch.mjs';
import { harness } from './harnesses.mjs';
import { libtensorflow } from './libtensorflow.mjs';
import { npmPackages } from './npm-packages.mjs';
import { browser, docker } from './for-tests.mjs';
import { systemPackages } from './system-packages.mjs';

// No service listens on port 1: every connection is refused at once.
const NOWHERE = 'http://127.0.0.1:1/';

const pins = {
  tensorflow: {
    version: '9.9.9',
    package: 'tensorflow-cpu',
    wheelMegabytes: 1,
    sha256: 'a'.repeat(64),
    python: '3.11',
    abi: 'cp311',
  },
  harnesses: {
    toy: {
      package: 'toy-agent',
      version: '1.0.0',
      directory: 'toy@1.0.0',
      binary: 'node_modules/toy-agent/toy',
      megabytes: 1,
    },
  },
};

/** A checkout with a recipe for the harness `toy`, and a context for steps. */
function context(t, env = {}) {
  const root = scratchFolder(t);
  const recipe = join(root, 'tools/harnesses/toy');
  mkdirSync(recipe, { recursive: true });
  const lock = {
    name: 'toy',
    lockfileVersion: 3,
    packages: {
      '': { dependencies: { 'toy-agent': '1.0.0' } },
      'node_modules/toy-agent': { version: '1.0.0' },
    },
  };
  writeFileSync(
    join(recipe, 'package.json'),
    JSON.stringify({ name: 'toy', dependencies: { 'toy-agent': '1.0.0' } }),
  );
  writeFileSync(join(recipe, 'package-lock.json'), JSON.stringify(lock));
  const said = [];
  return {
    root,
    cache: join(root, 'cache'),
    env: { ...process.env, ...env },
    pins,
    log: join(root, 'log'),
    said,
    say: (text) => said.push(text),
  };
}

/** A stand-in for npm that installs `toy-agent` after `seconds`; npm is recognised by the name of its file. */
function fakeNpm(t, seconds) {
  const folder = scratchFolder(t);
  const cli = join(folder, 'npm-cli.js');
  writeFileSync(
    cli,
    `const fs = require('node:fs');
     fs.mkdirSync('node_modules/toy-agent', { recursive: true });
     console.log('installing');
     setTimeout(() => {
       fs.writeFileSync('node_modules/toy-agent/toy', process.env.npm_config_engine_strict);
       fs.writeFileSync('node_modules/.package-lock.json', fs.readFileSync('package-lock.json'));
     }, ${seconds * 1000});`,
  );
  writeFileSync(join(folder, 'package.json'), '{"type":"commonjs"}');
  return cli;
}

const target = (given) => join(given.cache, 'harnesses/toy@1.0.0');

test('a harness is installed once, by its lock file, whatever engines it asks for', async (t) => {
  const given = context(t, { npm_execpath: fakeNpm(t, 0), npm_config_engine_strict: 'true' });
  assert.equal((await harness(given, 'toy').run()).status, 'done');
  assert.equal(readFileSync(join(target(given), 'node_modules/toy-agent/toy'), 'utf8'), 'false');
  assert.equal((await harness(given, 'toy').run()).status, 'ready');
});

test('a folder made by hand is adopted when whole, replaced when not', async (t) => {
  const given = context(t, { npm_execpath: fakeNpm(t, 0) });
  const home = join(target(given), 'node_modules');
  mkdirSync(join(home, 'toy-agent'), { recursive: true });
  writeFileSync(join(home, 'toy-agent/toy'), 'by hand');
  assert.equal((await harness(given, 'toy').run()).status, 'done', 'no hidden lock: not known to be whole');
  const other = context(t, { npm_execpath: fakeNpm(t, 0) });
  const theirs = join(target(other), 'node_modules');
  mkdirSync(join(theirs, 'toy-agent'), { recursive: true });
  writeFileSync(join(theirs, 'toy-agent/toy'), 'by hand');
  writeFileSync(
    join(theirs, '.package-lock.json'),
    readFileSync(join(other.root, 'tools/harnesses/toy/package-lock.json')),
  );
  assert.equal((await harness(other, 'toy').run()).status, 'adopted');
  assert.equal(readFileSync(join(theirs, 'toy-agent/toy'), 'utf8'), 'by hand');
});

for (const signal of ['SIGTERM', 'SIGKILL']) {
  test(`an installation ended by ${signal} leaves no half harness, and the next one goes through`, async (t) => {
    const given = context(t, { npm_execpath: fakeNpm(t, 30) });
    const module = (file) => JSON.stringify(pathToFileURL(join(import.meta.dirname, file)).href);
    const source = `
      import { harness } from ${module('harnesses.mjs')};
      import { forwardSignals } from ${module('../lib/run.mjs')};
      forwardSignals();
      const given = ${JSON.stringify({ ...given, env: undefined, said: undefined })};
      harness({ ...given, env: process.env, say: (text) => console.log(text) }, 'toy')
        .run().catch((error) => { console.log(error.code); process.exitCode = 130; });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
      env: given.env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let printed = '';
    child.stdout.on('data', (chunk) => (printed += chunk));
    while (!existsSync(given.log) || !readFileSync(given.log, 'utf8').includes('installing')) {
      await new Promise((fulfil) => setTimeout(fulfil, 20));
    }
    child.kill(signal);
    const [code, by] = await once(child, 'exit');
    if (signal === 'SIGTERM') {
      assert.equal(code, 130);
      assert.match(printed, /BOOT_E_INTERRUPTED/);
      assert.deepEqual(readdirSync(join(given.cache, 'harnesses')), [], 'swept at once');
      assert.deepEqual(readdirSync(join(given.cache, 'locks')), []);
    } else assert.equal(by, 'SIGKILL');
    assert.equal(existsSync(target(given)), false);

    const again = { ...given, env: { ...given.env, npm_execpath: fakeNpm(t, 0) } };
    assert.equal((await harness(again, 'toy').run()).status, 'done');
    assert.deepEqual(readdirSync(join(given.cache, 'harnesses')), ['toy@1.0.0']);
  });
}

test('without network npm, pip and apt failures name what could not be fetched', async (t) => {
  const given = context(t, {
    npm_execpath: undefined,
    npm_config_registry: NOWHERE,
    npm_config_cache: join(scratchFolder(t), 'npm'),
    npm_config_fetch_retries: '0',
    PIP_INDEX_URL: `${NOWHERE}simple`,
    PIP_CONFIG_FILE: '/dev/null',
    PIP_EXTRA_INDEX_URL: '',
    PIP_FIND_LINKS: '',
    PIP_RETRIES: '0',
  });
  const reached = (what) => (error) =>
    error.code === 'BOOT_E_NETWORK' && error.message.includes(what) && error.log === given.log;
  await assert.rejects(harness(given, 'toy').run(), reached('the harness toy-agent 1.0.0'));
  await assert.rejects(libtensorflow(given).run(), reached('the wheel tensorflow-cpu 9.9.9'));
  assert.deepEqual(readdirSync(join(given.cache, 'wheels')), []);

  writeFileSync(join(given.root, 'package.json'), '{"name":"x","dependencies":{"toy-agent":"1.0.0"}}');
  writeFileSync(
    join(given.root, 'package-lock.json'),
    readFileSync(join(given.root, 'tools/harnesses/toy/package-lock.json')),
  );
  await assert.rejects(npmPackages(given).run(), reached('the npm packages of package-lock.json'));

  const { folder } = machineWith(t, ['setpriv', 'g++', 'make', 'cmake', 'git', 'strace']);
  const apt = join(folder, 'apt-get');
  writeFileSync(apt, '#!/bin/sh\necho "W: Failed to fetch x  Temporary failure resolving y" >&2; exit 100\n');
  chmodSync(apt, 0o755);
  const bare = { ...given, env: { PATH: folder }, uid: 0 };
  await assert.rejects(systemPackages(bare).run(), reached('bubblewrap, python3, python3-venv'));
});

/** A PATH on which only `commands` are found (as links to true), plus a shell. */
function machineWith(t, commands) {
  const folder = scratchFolder(t);
  for (const command of commands) symlinkSync(onPath('true'), join(folder, command));
  return { folder };
}

test('a user who is not root is told exactly what to run', async (t) => {
  const { folder } = machineWith(t, [
    'bwrap',
    'setpriv',
    'make',
    'cmake',
    'python3',
    'git',
    'strace',
    'apt-get',
  ]);
  const given = { ...context(t), env: { PATH: folder }, uid: 1000 };
  await assert.rejects(systemPackages(given).run(), (error) => {
    assert.equal(error.code, 'BOOT_E_SYSTEM_PACKAGES');
    assert.match(error.message, /^missing: g\+\+ \(native addon/);
    assert.match(error.hints[0], /sudo apt-get update && sudo apt-get install -y g\+\+$/);
    return true;
  });
});

test('what Treeward can do without does not stop it', async (t) => {
  const { folder } = machineWith(t, ['bwrap', 'setpriv', 'g++', 'make', 'cmake', 'python3', 'git']);
  const result = await systemPackages({ ...context(t), env: { PATH: folder }, uid: 1000 }).run();
  assert.equal(result.status, 'skipped');
  assert.match(result.detail, /works without strace .*install -y strace$/);
});

test('root installs what is missing, after one update of the lists', async (t) => {
  const { folder } = machineWith(t, ['setpriv', 'g++', 'make', 'cmake', 'python3', 'git', 'strace']);
  const calls = join(folder, 'calls');
  const script = `#!/bin/sh\necho "$@" >> ${calls}\ncase "$*" in *install*) ln -s ${onPath('true')} ${folder}/bwrap;; esac\n`;
  writeFileSync(join(folder, 'apt-get'), script);
  chmodSync(join(folder, 'apt-get'), 0o755);
  symlinkSync(onPath('ln'), join(folder, 'ln'));
  const result = await systemPackages({ ...context(t), env: { PATH: folder }, uid: 0 }).run();
  assert.deepEqual(result, { status: 'done', detail: 'bubblewrap' });
  const lines = readFileSync(calls, 'utf8').trim().split('\n');
  assert.match(lines[0], / update$/);
  assert.match(lines[1], / install -y --no-install-recommends bubblewrap$/);
});

test('a browser for the tests is installed by root, unless there is one of another name', async (t) => {
  const { folder } = machineWith(t, []);
  const given = { ...context(t), env: { PATH: folder } };
  const other = await browser({ ...given, uid: 1000 }).run();
  assert.equal(other.status, 'skipped');
  assert.match(other.detail, /not looked at in a browser: root has to apt-get .* chromium-headless-shell$/);
  writeFileSync(join(folder, 'apt-get'), '#!/bin/sh\nexit 0\n');
  chmodSync(join(folder, 'apt-get'), 0o755);
  const result = await browser({ ...given, uid: 0 }).run();
  assert.deepEqual(result, { status: 'done', detail: 'chromium-headless-shell' });
  symlinkSync(onPath('true'), join(folder, 'google-chrome'));
  assert.deepEqual(await browser({ ...given, uid: 1000 }).run(), { status: 'ready' });
});

test('docker for the tests is installed by root, and passed over, with the reason, where it cannot be', async (t) => {
  const { folder } = machineWith(t, ['dockerd']);
  const given = { ...context(t), env: { PATH: folder } };
  const other = await docker({ ...given, uid: 1000 }).run();
  assert.equal(other.status, 'skipped');
  assert.match(other.detail, /no tests of containers: .* mmdebstrap runsc$/);

  writeFileSync(join(folder, 'apt-get'), '#!/bin/sh\nexit 100\n');
  chmodSync(join(folder, 'apt-get'), 0o755);
  assert.equal((await docker({ ...given, uid: 0 }).run()).status, 'skipped');
  writeFileSync(join(folder, 'apt-get'), '#!/bin/sh\nexit 0\n');
  const result = await docker({ ...given, uid: 0 }).run();
  assert.deepEqual(result, { status: 'done', detail: 'mmdebstrap, runsc' });
  for (const name of ['mmdebstrap', 'runsc']) symlinkSync(onPath('true'), join(folder, name));
  assert.deepEqual(await docker({ ...given, uid: 0 }).run(), { status: 'ready' });
});
