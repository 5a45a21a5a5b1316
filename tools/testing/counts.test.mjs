import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseTestArguments } from '../test.mjs';
import { reportCounts, tapCounts, vitestCounts, vitestFailures } from './counts.mjs';
import { scratchFolder } from './scratch.mjs';
import { smokeProblems } from './smoke.mjs';
import { partTable } from './table.mjs';

const report = (fields) => ({
  numPassedTests: 3,
  numFailedTests: 0,
  numPendingTests: 1,
  numTodoTests: 1,
  success: true,
  testResults: [],
  ...fields,
});

test('vitest reports are counted, files that did not load as failures', () => {
  assert.deepEqual(vitestCounts(report({})), { passed: 3, failed: 0, skipped: 2 });
  const unloaded = report({ success: false, testResults: [{ status: 'failed', assertionResults: [] }] });
  assert.equal(vitestCounts(unloaded).failed, 1);
  const hook = report({
    success: false,
    testResults: [{ status: 'failed', assertionResults: [{ status: 'passed' }] }],
  });
  assert.equal(vitestCounts(hook).failed, 1);
  const counted = report({
    numFailedTests: 2,
    success: false,
    testResults: [{ status: 'failed', assertionResults: [{ status: 'failed' }] }],
  });
  assert.equal(vitestCounts(counted).failed, 2);
  assert.equal(vitestCounts(report({ success: false })).failed, 1, 'an error outside tests');
});

test('a crash without a report is a failure', (t) => {
  const file = join(scratchFolder(t), 'r.json');
  assert.equal(reportCounts(file).counts.failed, 1);
  writeFileSync(file, '{"numPassed');
  assert.equal(reportCounts(file).counts.failed, 1);
  writeFileSync(file, JSON.stringify(report({})));
  assert.deepEqual(reportCounts(file), { counts: { passed: 3, failed: 0, skipped: 2 }, failures: [] });
});

test('what failed is told by name, files that did not load too', () => {
  const failed = { status: 'failed', fullName: 'adds two', failureMessages: ['expected 3\nat line 1'] };
  const told = vitestFailures({
    testResults: [
      {
        name: 'a.test.ts',
        status: 'failed',
        assertionResults: [{ status: 'passed', fullName: 'x' }, failed],
      },
      { name: 'b.test.ts', status: 'failed', message: 'no such module', assertionResults: [] },
      { name: 'c.test.ts', status: 'passed', assertionResults: [{ status: 'passed', fullName: 'y' }] },
    ],
  });
  assert.deepEqual(told, ['a.test.ts > adds two\n  expected 3\n  at line 1', 'b.test.ts\n  no such module']);
});

test('closing lines of TAP', () => {
  const closing = '# tests 7\n# suites 0\n# pass 4\n# fail 1\n# cancelled 1\n# skipped 1\n# todo 0\n';
  assert.deepEqual(tapCounts(closing), { passed: 4, failed: 2, skipped: 1 });
  assert.equal(tapCounts('TAP version 13\nok 1'), undefined);
});

test('arguments of the tests', () => {
  const known = ['lint', 'unit'];
  assert.deepEqual(parseTestArguments([], known), { full: false, only: known });
  assert.deepEqual(parseTestArguments(['--full', '--only', 'unit'], known), { full: true, only: ['unit'] });
  for (const bad of [['--fast'], ['--only'], ['--only', 'units']]) {
    assert.throws(() => parseTestArguments(bad, known), { code: 'BOOT_E_USAGE' });
  }
});

test('the table shows minutes, counts and reasons', () => {
  const table = partTable([
    { part: 'lint', seconds: 30, counts: { passed: 1, failed: 0, skipped: 0 } },
    { part: 'smoke', seconds: 0, counts: { passed: 0, failed: 0, skipped: 1 }, note: 'not installed: x' },
  ]);
  assert.deepEqual(table.split('\n'), [
    'part   minutes  passed  failed  skipped',
    'lint      0.50       1       0        0',
    'smoke     0.00       0       0        1  not installed: x',
    'total     0.50',
  ]);
});

test('a smoke run must have taken its steps and measured both harnesses', (t) => {
  const folder = scratchFolder(t);
  assert.match(smokeProblems(folder)[0], /metrics\.jsonl is missing/);
  mkdirSync(folder, { recursive: true });
  const row = (step) => ({
    'progress/step': step,
    'policy/rollout_kl': 0,
    'optim/grad_norm': 1,
    'reward/all/claude-code/mean': 0.5,
    'reward/all/openclaw/mean': 0.5,
  });
  const write = (rows) =>
    writeFileSync(join(folder, 'metrics.jsonl'), rows.map((r) => `${JSON.stringify(r)}\n`).join(''));
  write([row(1), row(2)]);
  assert.deepEqual(smokeProblems(folder), []);
  write([row(1), row(1)]);
  assert.deepEqual(smokeProblems(folder), ['1 steps instead of 2']);
  const { 'reward/all/openclaw/mean': _, ...without } = row(1);
  write([without, { ...without, 'progress/step': 2 }]);
  assert.deepEqual(smokeProblems(folder), ['metric reward/all/openclaw/mean is missing']);
});
