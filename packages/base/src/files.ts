import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { TreewardError } from './errors.js';

/** Writes beside the target and renames: a reader sees the old file or the whole new one, never half of it. */
export function writeFileAtomic(path: string, data: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.${Math.random().toString(36).slice(2)}.tmp`;
  const fd = openSync(temporary, 'w');
  try {
    try {
      const bytes = typeof data === 'string' ? Buffer.from(data) : data;
      for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

export function writeJsonAtomic(path: string, value: unknown): void {
  writeFileAtomic(path, JSON.stringify(value, null, 2) + '\n');
}

/** A byte order mark is passed over, as other people's files have them. @throws TreewardError FILE_E_MISSING, FILE_E_JSON naming the file */
export function readJson<T>(path: string): T {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new TreewardError('FILE_E_MISSING', `cannot read ${path}`, { cause, data: { file: path } });
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, '')) as T;
  } catch (cause) {
    throw new TreewardError('FILE_E_JSON', `${path} is not valid JSON: ${(cause as Error).message}`, {
      cause,
      data: { file: path },
    });
  }
}
