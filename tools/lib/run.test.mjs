import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { scratchFolder } from '../testing/scratch.mjs';
import { run } from './run.mjs';

const runModule = JSON.stringify(pathToFileURL(join(import.meta.dirname, 'run.mjs')).href);

/** A program that saves for a while once it is told to stop, and says how often it was told. */
const SAVING = `
  let signals = [];
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {
    signals.push(signal);
    setTimeout(() => { console.log('saved after ' + signals.join()); process.exit(7); }, 300);
  });
  setInterval(() => {}, 1000);
  console.log('pid ' + process.pid);`;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  test(`${signal} reaches the program, which is waited for and whose exit code is kept`, async () => {
    const source = `
      import { forwardSignals, runInteractive } from ${runModule};
      forwardSignals();
      process.exitCode = await runInteractive(process.execPath, ['-e', ${JSON.stringify(SAVING)}]);`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', source], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let printed = '';
    parent.stdout.on('data', (chunk) => (printed += chunk));
    while (!printed.includes('pid ')) await once(parent.stdout, 'data');
    const child = Number(/pid (\d+)/.exec(printed)[1]);
    parent.kill(signal);
    const [code] = await once(parent, 'close');
    assert.equal(code, 7);
    assert.match(printed, new RegExp(`saved after ${signal}\n$`), 'told once');
    assert.throws(() => process.kill(child, 0), { code: 'ESRCH' });
  });
}

test('a command that fails is told with its last words, and its whole output is in the log', async (t) => {
  const log = join(scratchFolder(t), 'deep/log');
  const options = { log, what: 'the thing', code: 'BOOT_E_THING', hints: ['mend it'] };
  const source = `for (let i = 0; i < 50; i++) console.log('line ' + i); console.error('last'); process.exitCode = 3`;
  await assert.rejects(run(process.execPath, ['-e', source], options), (error) => {
    assert.equal(error.code, 'BOOT_E_THING');
    assert.match(error.message, /^the thing failed with exit code 3:/);
    assert.match(error.message, /line 49\n/);
    assert.match(error.message, /last/);
    assert.doesNotMatch(error.message, /line 3\n/);
    return true;
  });
  assert.match(readFileSync(log, 'utf8'), /line 3\n/);
});

test('a missing command, and a network failure of a command that does not download, keep their own code', async (t) => {
  const log = join(scratchFolder(t), 'log');
  await assert.rejects(run('no-such-command', [], { log, what: 'x', code: 'BOOT_E_X' }), {
    code: 'BOOT_E_X',
    message: /ENOENT/,
  });
  const source = `console.error('ENOTFOUND'); process.exitCode = 1`;
  await assert.rejects(run(process.execPath, ['-e', source], { log, what: 'x', code: 'BOOT_E_X' }), {
    code: 'BOOT_E_X',
  });
  await assert.rejects(run(process.execPath, ['-e', source], { log, what: 'x', fetches: true }), {
    code: 'BOOT_E_NETWORK',
  });
});

test('what a command prints on stdout comes back', async (t) => {
  const log = join(scratchFolder(t), 'log');
  assert.equal(
    await run(process.execPath, ['-e', `console.error('no'); console.log('yes')`], { log, what: 'x' }),
    'yes\n',
  );
});
