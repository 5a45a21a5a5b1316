import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { scratchFolder } from '../testing/scratch.mjs';
import { extractEntry, listZip } from './unzip.mjs';

/** A zip archive of `files` (name → text), each deflated unless its name ends in `.stored`. */
function makeZip(files) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [name, text] of Object.entries(files)) {
    const stored = name.endsWith('.stored');
    const data = stored ? Buffer.from(text) : deflateRawSync(text);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(name.length, 26);
    const central = Buffer.alloc(46);
    central.writeUInt32LE(0x02014b50, 0);
    central.writeUInt16LE(stored ? 0 : 8, 10);
    central.writeUInt32LE(data.length, 20);
    central.writeUInt32LE(text.length, 24);
    central.writeUInt16LE(name.length, 28);
    central.writeUInt32LE(offset, 42);
    parts.push(local, Buffer.from(name), data);
    directory.push(central, Buffer.from(name));
    offset += 30 + name.length + data.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(Object.keys(files).length, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

test('deflated, stored and empty entries come out as they went in', async (t) => {
  const base = scratchFolder(t);
  const files = { 'a/b.h': 'x'.repeat(100_000), 'c.stored': 'plain', empty: '' };
  const file = join(base, 'x.zip');
  writeFileSync(file, makeZip(files));
  const entries = await listZip(file);
  assert.deepEqual(
    entries.map(({ name }) => name),
    Object.keys(files),
  );
  for (const entry of entries) {
    const target = join(base, 'out', entry.name);
    await extractEntry(file, entry, target);
    assert.equal(readFileSync(target, 'utf8'), files[entry.name]);
  }
});

test('a cut archive is named and not read', async (t) => {
  const file = join(scratchFolder(t), 'cut.zip');
  writeFileSync(file, makeZip({ a: 'hello' }).subarray(0, 40));
  await assert.rejects(
    listZip(file),
    (error) => error.code === 'BOOT_E_ARCHIVE' && error.message.includes(file),
  );
});

test('an entry whose size is not as promised is an error', async (t) => {
  const base = scratchFolder(t);
  const file = join(base, 'x.zip');
  writeFileSync(file, makeZip({ a: 'hello' }));
  const [entry] = await listZip(file);
  await assert.rejects(extractEntry(file, { ...entry, size: 6 }, join(base, 'a')), {
    code: 'BOOT_E_ARCHIVE',
  });
});
