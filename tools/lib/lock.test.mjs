import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { scratchFolder } from '../testing/scratch.mjs';
import { withLock } from './lock.mjs';
import { processIdentity } from './processes.mjs';

const lockModule = pathToFileURL(join(import.meta.dirname, 'lock.mjs')).href;

/** A process that takes the lock and then runs `body` (source text) inside it. */
function holder(file, body) {
  const source = `
    import { withLock } from ${JSON.stringify(lockModule)};
    import { readFileSync, writeFileSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    await withLock(${JSON.stringify(file)}, async () => { ${body} }, { pollMs: 5 });`;
  return spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

test('processes take turns', async (t) => {
  const folder = scratchFolder(t);
  const counter = join(folder, 'counter');
  writeFileSync(counter, '0');
  const body = `const n = Number(readFileSync(${JSON.stringify(counter)}, 'utf8')); await sleep(20);
    writeFileSync(${JSON.stringify(counter)}, String(n + 1));`;
  const children = Array.from({ length: 5 }, () => holder(join(folder, 'lock'), body));
  const codes = await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0]));
  assert.deepEqual(codes, [0, 0, 0, 0, 0]);
  assert.equal(readFileSync(counter, 'utf8'), '5');
  assert.equal(existsSync(join(folder, 'lock')), false);
});

test('the lock of a killed process is taken over', async (t) => {
  const file = join(scratchFolder(t), 'lock');
  const child = holder(file, `console.log('held'); await sleep(60000);`);
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(existsSync(file), true, 'it could not clean up');
  const said = [];
  assert.equal(await withLock(file, () => 'mine', { log: (line) => said.push(line) }), 'mine');
  assert.match(said.join(), new RegExp(`gone \\(pid ${child.pid}\\)`));
  assert.equal(existsSync(file), false);
});

test('a living owner is waited for, then named', async (t) => {
  const file = join(scratchFolder(t), 'lock');
  writeFileSync(
    file,
    JSON.stringify({ pid: process.pid, identity: processIdentity(process.pid), host: hostname() }),
  );
  await assert.rejects(
    withLock(file, () => assert.fail('entered a held lock'), { timeoutMs: 50, pollMs: 10 }),
    (error) => error.code === 'BOOT_E_LOCKED' && error.message.includes(`pid ${process.pid}`),
  );
  assert.equal(existsSync(file), true);
});

test('a pid that now belongs to another process does not keep the lock', async (t) => {
  const file = join(scratchFolder(t), 'lock');
  writeFileSync(file, JSON.stringify({ pid: process.pid, identity: `${process.pid}:1`, host: hostname() }));
  assert.equal(await withLock(file, () => 'mine'), 'mine');
});

test('the lock of another machine is not stale, whatever its pid', async (t) => {
  const file = join(scratchFolder(t), 'lock');
  writeFileSync(file, JSON.stringify({ pid: 1, identity: '1:1', host: 'elsewhere' }));
  await assert.rejects(
    withLock(file, () => {}, { timeoutMs: 20, pollMs: 5 }),
    { code: 'BOOT_E_LOCKED' },
  );
});

test('an error inside releases the lock', async (t) => {
  const file = join(scratchFolder(t), 'lock');
  await assert.rejects(
    withLock(file, () => {
      throw new Error('inside');
    }),
    /inside/,
  );
  assert.equal(existsSync(file), false);
});
