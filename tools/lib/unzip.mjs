import { createReadStream, createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createInflateRaw } from 'node:zlib';
import { BootError } from './errors.mjs';

const END_OF_CENTRAL_DIRECTORY = 0x06054b50;
const CENTRAL_ENTRY = 0x02014b50;
const STORED = 0;
const DEFLATED = 8;

const damaged = (file, why) =>
  new BootError('BOOT_E_ARCHIVE', `${file} is not a whole zip archive: ${why}`, {
    hints: ['delete it and run the same command again'],
  });

async function readAt(handle, position, length) {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await handle.read(buffer, 0, length, position);
  return buffer.subarray(0, bytesRead);
}

/** The entries of a zip archive (no zip64): `{name, method, compressed, offset}`, offset of the local header. */
export async function listZip(file) {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const tail = await readAt(handle, Math.max(0, size - 65_558), Math.min(size, 65_558));
    let end = tail.length - 22;
    while (end >= 0 && tail.readUInt32LE(end) !== END_OF_CENTRAL_DIRECTORY) end--;
    if (end < 0) throw damaged(file, 'its directory is missing');
    const count = tail.readUInt16LE(end + 10);
    const directory = await readAt(handle, tail.readUInt32LE(end + 16), tail.readUInt32LE(end + 12));
    const entries = [];
    let at = 0;
    for (let i = 0; i < count; i++) {
      if (at + 46 > directory.length || directory.readUInt32LE(at) !== CENTRAL_ENTRY) {
        throw damaged(file, `entry ${i} of ${count} is unreadable`);
      }
      const nameLength = directory.readUInt16LE(at + 28);
      entries.push({
        name: directory.toString('utf8', at + 46, at + 46 + nameLength),
        method: directory.readUInt16LE(at + 10),
        compressed: directory.readUInt32LE(at + 20),
        size: directory.readUInt32LE(at + 24),
        offset: directory.readUInt32LE(at + 42),
      });
      at += 46 + nameLength + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
    }
    return entries;
  } finally {
    await handle.close();
  }
}

/** Writes one entry to `target`, making its folder. Throws `BOOT_E_ARCHIVE` when the size is not as promised. */
export async function extractEntry(file, entry, target) {
  const handle = await open(file, 'r');
  let header;
  try {
    header = await readAt(handle, entry.offset, 30);
  } finally {
    await handle.close();
  }
  const start = entry.offset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28);
  mkdirSync(dirname(target), { recursive: true });
  if (entry.size === 0) {
    writeFileSync(target, '');
    return;
  }
  const sink = createWriteStream(target, { highWaterMark: 1 << 20 });
  const source = createReadStream(file, { start, end: start + entry.compressed - 1, highWaterMark: 1 << 20 });
  if (entry.method === STORED) await pipeline(source, sink);
  else if (entry.method === DEFLATED) await pipeline(source, createInflateRaw({ chunkSize: 1 << 20 }), sink);
  else throw damaged(file, `${entry.name} is packed by unknown method ${entry.method}`);
  if (sink.bytesWritten !== entry.size) {
    throw damaged(file, `${entry.name} unpacked to ${sink.bytesWritten} bytes instead of ${entry.size}`);
  }
}
