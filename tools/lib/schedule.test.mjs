import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { schedule } from './schedule.mjs';

const step = (id, needs, run = async () => ({})) => ({ id, title: id, needs, run });

test('steps wait for what they need and run side by side otherwise', async () => {
  const events = [];
  let running = 0;
  let most = 0;
  const work = (id) => async () => {
    events.push(`+${id}`);
    most = Math.max(most, ++running);
    await sleep(10);
    running--;
    events.push(`-${id}`);
    return { status: 'done', detail: id };
  };
  const steps = [
    step('d', ['b', 'c'], work('d')),
    step('a', [], work('a')),
    step('b', ['a'], work('b')),
    step('c', ['a'], work('c')),
  ];
  const records = await schedule(steps, { limit: 2 });
  assert.deepEqual(
    records.map(({ id, status, detail }) => [id, status, detail]),
    [
      ['d', 'done', 'd'],
      ['a', 'done', 'a'],
      ['b', 'done', 'b'],
      ['c', 'done', 'c'],
    ],
  );
  assert.equal(most, 2);
  assert.ok(events.indexOf('-a') < events.indexOf('+b'));
  assert.ok(events.indexOf('-b') < events.indexOf('+d') && events.indexOf('-c') < events.indexOf('+d'));
});

test('a failure blocks only what needs it', async () => {
  const broken = new Error('broken');
  const records = await schedule(
    [
      step('a', [], async () => {
        throw broken;
      }),
      step('b', ['a'], () => assert.fail('must not run')),
      step('c', ['b'], () => assert.fail('must not run')),
      step('d', []),
    ],
    {},
  );
  assert.deepEqual(
    records.map(({ status }) => status),
    ['failed', 'blocked', 'blocked', 'done'],
  );
  assert.equal(records[0].error, broken);
});

test('needs that are not part of the run do not hold a step up', async () => {
  const [record] = await schedule([step('b', ['left-out'])], {});
  assert.equal(record.status, 'done');
});

test('a circle is an error', async () => {
  await assert.rejects(schedule([step('a', ['b']), step('b', ['a'])], {}), /in a circle: a, b/);
});
