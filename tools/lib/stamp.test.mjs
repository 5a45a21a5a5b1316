import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scratchFolder } from '../testing/scratch.mjs';
import { dropStamp, hashFiles, listFiles, readStamp, writeStamp } from './stamp.mjs';

test('the hash follows contents, names, missing files and extra values', (t) => {
  const base = scratchFolder(t);
  writeFileSync(join(base, 'a'), 'one');
  const first = hashFiles(base, ['a', 'b'], ['x']);
  assert.equal(hashFiles(base, ['a', 'b'], ['x']), first);
  assert.notEqual(hashFiles(base, ['a', 'b'], ['y']), first);
  assert.notEqual(hashFiles(base, ['a'], ['x']), first);
  writeFileSync(join(base, 'b'), '');
  const withEmpty = hashFiles(base, ['a', 'b'], ['x']);
  assert.notEqual(withEmpty, first, 'an empty file is not a missing one');
  rmSync(join(base, 'b'));
  assert.equal(hashFiles(base, ['a', 'b'], ['x']), first);
});

test('files are listed in order, skipped folders left out', (t) => {
  const base = scratchFolder(t);
  for (const folder of ['p/src', 'p/dist']) mkdirSync(join(base, folder), { recursive: true });
  for (const file of ['p/src/b.ts', 'p/src/a.ts', 'p/dist/a.js']) writeFileSync(join(base, file), '');
  assert.deepEqual(
    listFiles(base, 'p', (name) => name === 'dist'),
    ['p/src/a.ts', 'p/src/b.ts'],
  );
  assert.deepEqual(listFiles(base, 'absent'), []);
});

test('a stamp is whole or absent, and leaves no temporary file', (t) => {
  const base = scratchFolder(t);
  const file = join(base, 'deep/stamp.json');
  assert.equal(readStamp(file), undefined);
  writeStamp(file, { key: 'k' });
  assert.deepEqual(readStamp(file), { key: 'k' });
  assert.deepEqual(readdirSync(join(base, 'deep')), ['stamp.json']);
  writeFileSync(file, '{"key":');
  assert.equal(readStamp(file), undefined, 'half a stamp vouches for nothing');
  dropStamp(file);
  dropStamp(file);
  assert.deepEqual(readdirSync(join(base, 'deep')), []);
});
