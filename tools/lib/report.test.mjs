import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BootError } from './errors.mjs';
import { progressPrinter, setupReport, withEarlierWork } from './report.mjs';

const pins = { tensorflow: { version: '2.0.0' }, harnesses: { toy: { version: '1.0.0' } } };
const make = (records, startedAt, totalSeconds) =>
  setupReport(records, { pins, startedAt, totalSeconds, cache: '/c' });
const record = (id, status, seconds, more = {}) => ({ id, title: id, status, seconds, ...more });

test('the file keeps who did the work, the total is that of the latest run', () => {
  const first = withEarlierWork(
    make([record('a', 'done', 20), record('b', 'done', 5)], 'first', 25),
    undefined,
  );
  const second = withEarlierWork(make([record('a', 'ready', 0)], 'second', 0.2), first);
  assert.equal(second.totalSeconds, 0.2);
  assert.deepEqual(
    second.steps.map(({ id, status, seconds, startedAt }) => [id, status, seconds, startedAt]),
    [
      ['a', 'done', 20, 'first'],
      ['b', 'done', 5, 'first'],
    ],
  );
  const third = withEarlierWork(make([record('b', 'done', 1)], 'third', 1), second);
  assert.equal(third.steps.find(({ id }) => id === 'b').startedAt, 'third');
});

test('a failure makes the report not ok, with its code', () => {
  const error = new BootError('BOOT_E_X', 'broke');
  const report = make([record('a', 'failed', 1, { error }), record('b', 'blocked', 0)], 'now', 1);
  assert.equal(report.ok, false);
  assert.deepEqual(report.steps[0].error, { code: 'BOOT_E_X', message: 'broke' });
  assert.equal(JSON.parse(JSON.stringify(report)).steps[1].status, 'blocked');
});

test('steps that found everything in place print nothing', () => {
  const lines = [];
  const printer = progressPrinter((line) => lines.push(line));
  printer.end(record('a', 'ready', 0));
  printer.end(record('b', 'done', 2, { detail: 'x' }));
  printer.end(
    record('c', 'failed', 1, { error: new BootError('BOOT_E_X', 'broke', { hints: ['mend it'] }) }),
  );
  assert.equal(lines.length, 3);
  assert.match(lines[0], /b: done in 2\.0 s \(x\)$/);
  assert.match(lines[1], /c: FAILED in 1\.0 s$/);
  assert.equal(lines[2], 'BOOT_E_X: broke\n  - mend it');
});
