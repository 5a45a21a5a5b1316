import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scratchFolder } from '../testing/scratch.mjs';
import { buildFolder, sweepWorkFolders } from './workfolder.mjs';

test('the target appears whole and replaces the old one', async (t) => {
  const base = scratchFolder(t);
  const target = join(base, 'it');
  await buildFolder(target, (work) => {
    assert.deepEqual(
      readdirSync(base).filter((name) => name === 'it'),
      [],
    );
    writeFileSync(join(work, 'a'), '1');
  });
  await buildFolder(target, (work) => writeFileSync(join(work, 'b'), '2'));
  assert.deepEqual(readdirSync(target), ['b']);
  assert.deepEqual(readdirSync(base), ['it']);
});

test('a failure keeps the old target and leaves nothing behind', async (t) => {
  const base = scratchFolder(t);
  const target = join(base, 'it');
  await buildFolder(target, (work) => writeFileSync(join(work, 'a'), 'old'));
  await assert.rejects(
    buildFolder(target, (work) => {
      writeFileSync(join(work, 'a'), 'new');
      throw new Error('no disk');
    }),
    /no disk/,
  );
  assert.equal(readFileSync(join(target, 'a'), 'utf8'), 'old');
  assert.deepEqual(readdirSync(base), ['it']);
});

test('work folders of processes that are gone are swept, others stay', (t) => {
  const base = scratchFolder(t);
  const start = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ')[19];
  const mine = `.work-${process.pid}-${start}-x`;
  for (const name of ['.work-999999999-5-x', `.work-${process.pid}-1-x`, mine, 'other'])
    mkdirSync(join(base, name));
  sweepWorkFolders(base);
  assert.deepEqual(readdirSync(base).sort(), [mine, 'other'].sort());
  sweepWorkFolders(join(base, 'absent'));
});
