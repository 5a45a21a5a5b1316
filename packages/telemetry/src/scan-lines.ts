import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { TreewardError } from '@treeward/base';

/** Bytes asked for at a time; the buffer grows beyond it only for a line that is longer. */
const CHUNK = 1 << 20;
const NEWLINE = 0x0a;

/**
 * One line: `bytes[start, end)` without its newline, valid until the visitor returns. `ended` is false for a last line
 * without a newline.
 */
export type VisitLine = (bytes: Buffer, start: number, end: number, ended: boolean) => void;

/**
 * Reads a file line by line with a buffer of one chunk, whatever the file's size. Bytes appended while it reads may be
 * seen or not.
 * @returns false when there is no such file
 * @throws TreewardError RECORD_E_READ naming the file
 */
export function scanLines(path: string, visit: VisitLine): boolean {
  const fd = openToRead(path);
  if (fd === null) return false;
  try {
    let buffer = Buffer.allocUnsafeSlow(Math.min(CHUNK, fstatSync(fd).size + 1));
    let filled = 0;
    for (;;) {
      // A line that does not fit: the buffer doubles. Otherwise it is reused from its start.
      if (filled === buffer.length) {
        const larger = Buffer.allocUnsafeSlow(2 * buffer.length);
        buffer.copy(larger, 0, 0, filled);
        buffer = larger;
      }
      const read = readAt(fd, path, buffer, filled, buffer.length - filled, null);
      if (read === 0) break;
      const rest = visitLines(buffer, filled, filled + read, visit);
      filled += read;
      if (rest > 0) {
        buffer.copyWithin(0, rest, filled);
        filled -= rest;
      }
    }
    if (filled > 0) visit(buffer, 0, filled, false);
    return true;
  } finally {
    closeSync(fd);
  }
}

/**
 * The ended lines of `bytes[0, end)`; no newline lies before `searched`.
 * @returns where the line without an end begins
 */
export function visitLines(bytes: Buffer, searched: number, end: number, visit: VisitLine): number {
  let start = 0;
  let newline = bytes.indexOf(NEWLINE, searched);
  while (newline >= 0 && newline < end) {
    visit(bytes, start, newline, true);
    start = newline + 1;
    newline = bytes.indexOf(NEWLINE, start);
  }
  return start;
}

/**
 * A whole file, in a buffer of its own: those of Node's pool cannot change owner. Null when there is no such file.
 * @throws TreewardError RECORD_E_READ naming the file
 */
export function readWhole(path: string): Buffer<ArrayBuffer> | null {
  const fd = openToRead(path);
  if (fd === null) return null;
  try {
    const bytes = Buffer.allocUnsafeSlow(fstatSync(fd).size);
    let filled = 0;
    while (filled < bytes.length) {
      const read = readAt(fd, path, bytes, filled, bytes.length - filled, filled);
      if (read === 0) break;
      filled += read;
    }
    return bytes.subarray(0, filled) as Buffer<ArrayBuffer>;
  } finally {
    closeSync(fd);
  }
}

/** Null when there is no such file. @throws TreewardError RECORD_E_READ */
export function openToRead(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw cannotRead(path, cause);
  }
}

/** `position` null continues where the last such read ended. @throws TreewardError RECORD_E_READ */
export function readAt(
  fd: number,
  path: string,
  into: Uint8Array,
  offset: number,
  length: number,
  position: number | null,
): number {
  try {
    return readSync(fd, into, offset, length, position);
  } catch (cause) {
    throw cannotRead(path, cause);
  }
}

function cannotRead(path: string, cause: unknown): TreewardError {
  return new TreewardError('RECORD_E_READ', `cannot read ${path}: ${(cause as Error).message}`, {
    cause,
    data: { file: path },
  });
}
