import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scratchFolder } from '../testing/scratch.mjs';
import { BootError, describeError } from './errors.mjs';
import { explainNetwork } from './network.mjs';
import { checkNode, meets } from './node-version.mjs';
import { isInstalled, npmEnvironment } from './npm.mjs';
import { cacheRoot, writableFolder } from './paths.mjs';
import { splitCommand } from './split-command.mjs';

test('node versions', () => {
  const ranges = ['^20.19.0', '^22.13.0', '>=24.0.0'];
  for (const good of ['20.19.0', '20.20.2', '22.13.1', '24.0.0', '26.10.0'])
    assert.equal(meets(good, ranges), true, good);
  for (const bad of ['18.20.0', '20.18.9', '21.7.0', '22.12.0', '23.9.0'])
    assert.equal(meets(bad, ranges), false, bad);
  assert.throws(() => checkNode(ranges, '18.0.0'), { code: 'BOOT_E_NODE_VERSION', message: /Node 18\.0\.0/ });
});

test('the cache lies where the environment says', () => {
  assert.equal(cacheRoot({ TREEWARD_CACHE: '/c', XDG_CACHE_HOME: '/x', HOME: '/h' }), '/c');
  assert.equal(cacheRoot({ XDG_CACHE_HOME: '/x', HOME: '/h' }), '/x/treeward');
  assert.equal(cacheRoot({ HOME: '/h' }), '/h/.cache/treeward');
  assert.throws(() => writableFolder('/dev/null/here'), { code: 'BOOT_E_NOT_WRITABLE' });
});

test('npm settings of this checkout stay here, how to reach the registry goes on', () => {
  const env = npmEnvironment({
    PATH: '/bin',
    npm_config_engine_strict: 'true',
    npm_config_ignore_scripts: 'true',
    npm_config_loglevel: 'silent',
    npm_lifecycle_event: 'start',
    npm_config_registry: 'kept',
    npm_config_https_proxy: 'kept',
    npm_config_fetch_retries: '0',
  });
  assert.equal(env.PATH, '/bin');
  assert.equal(env.npm_config_registry, 'kept');
  assert.equal(env.npm_config_https_proxy, 'kept');
  assert.equal(env.npm_config_fetch_retries, '0');
  for (const name of [
    'npm_config_engine_strict',
    'npm_config_ignore_scripts',
    'npm_config_loglevel',
    'npm_lifecycle_event',
  ]) {
    assert.equal(name in env, false, name);
  }
});

test('an installed tree is what the lock file says, optional packages aside', (t) => {
  const base = scratchFolder(t);
  const lockFile = join(base, 'package-lock.json');
  const write = (wanted, present) => {
    writeFileSync(lockFile, JSON.stringify({ packages: wanted }));
    writeFileSync(join(base, 'node_modules/.package-lock.json'), JSON.stringify({ packages: present }));
  };
  mkdirSync(join(base, 'node_modules/a'), { recursive: true });
  assert.equal(isInstalled(base, lockFile), false);
  const a = { version: '1.0.0', integrity: 'sha512-a' };
  write(
    { '': {}, 'node_modules/a': a, 'node_modules/mac': { version: '1.0.0', optional: true } },
    { 'node_modules/a': a },
  );
  assert.equal(isInstalled(base, lockFile), true);
  write({ 'node_modules/a': a }, { 'node_modules/a': { ...a, integrity: 'sha512-b' } });
  assert.equal(isInstalled(base, lockFile), false);
  write({ 'node_modules/a': a, 'node_modules/b': a }, { 'node_modules/a': a });
  assert.equal(isInstalled(base, lockFile), false);
  write({ 'node_modules/b': a }, { 'node_modules/b': a });
  assert.equal(isInstalled(base, lockFile), false, 'the folder itself is gone');
});

test('what tools print without network is understood, other failures are not blamed on it', () => {
  assert.match(
    explainNetwork('npm error code ENOTFOUND\nnpm error network request failed'),
    /could not be resolved/,
  );
  assert.match(explainNetwork('npm error code ECONNREFUSED'), /refused/);
  assert.match(
    explainNetwork("Temporary failure resolving 'a.b'\nE: Failed to fetch"),
    /could not be resolved/,
  );
  assert.match(explainNetwork('NewConnectionError(... [Errno 101] Network is unreachable)'), /unreachable/);
  assert.match(explainNetwork('npm error code ENOTCACHED'), /offline/);
  assert.equal(
    explainNetwork('npm error code EUSAGE\n`npm ci` can only install packages when in sync'),
    undefined,
  );
  assert.equal(explainNetwork('a.cc:3: error: expected ;'), undefined);
});

test('command lines split at spaces outside quotes', () => {
  assert.deepEqual(splitCommand(`node a.js train @ "my file" --x='1 2'  y`), [
    'node',
    'a.js',
    'train',
    '@',
    'my file',
    '--x=1 2',
    'y',
  ]);
});

test('an error is told with its ways out and its log', () => {
  const error = new BootError('BOOT_E_X', 'it broke', { hints: ['mend it'], log: '/l' });
  assert.equal(describeError(error), 'BOOT_E_X: it broke\n  - mend it\n  whole output: /l');
  assert.match(describeError(new TypeError('odd')), /TypeError: odd\n.*at /);
});
