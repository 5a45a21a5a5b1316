import { existsSync, readFileSync, statSync } from 'node:fs';
import { TreewardError } from '@treeward/base';

/** A task description, or one row of many, that is larger than this is not one. */
const LIMIT = 4 * 1024 * 1024;

/**
 * A text file of a foreign task set: no byte order mark, lines end in `\n`, valid UTF-8.
 * @throws TreewardError TASK_E_FILE (missing), TASK_E_HUGE, TASK_E_ENCODING
 */
export function readText(file: string): string {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) {
    throw new TreewardError('TASK_E_FILE', `${file} is missing`, { data: { file } });
  }
  if (size > LIMIT) {
    throw new TreewardError('TASK_E_HUGE', `${file}: ${size} bytes are too many for a task description`, {
      data: { file, size, limit: LIMIT },
      hints: ['put large inputs beside it, as files of the workspace'],
    });
  }
  return normaliseLines(decode(readFileSync(file), file));
}

/** @throws TreewardError TASK_E_ENCODING */
function decode(bytes: Uint8Array, where: string): string {
  try {
    // The decoder takes a byte order mark away.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new TreewardError('TASK_E_ENCODING', `${where} is not UTF-8`, { cause, data: { file: where } });
  }
}

/**
 * JSON of a foreign task set, read as `readText` reads.
 * @throws TreewardError TASK_E_JSON, and what `readText` throws
 */
export function readForeignJson(file: string): unknown {
  const text = readText(file);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new TreewardError('TASK_E_JSON', `${file} is not valid JSON: ${(cause as Error).message}`, {
      cause,
      data: { file },
    });
  }
}

/**
 * The lines of a file of rows that are not blank, by `<file>:<number>`; each is decoded by itself, so that one bad line costs one row.
 * The limit is a row's: whole data sets have gigabytes.
 * @throws TreewardError TASK_E_FILE (missing)
 */
export function readLines(file: string): Map<string, () => string> {
  if (!existsSync(file)) {
    throw new TreewardError('TASK_E_FILE', `${file} is missing`, { data: { file } });
  }
  const bytes = readFileSync(file);
  const lines = new Map<string, () => string>();
  for (let from = 0, number = 1; from < bytes.length; number++) {
    const end = bytes.indexOf(0x0a, from);
    const line = bytes.subarray(from, end === -1 ? bytes.length : end);
    from += line.length + 1;
    if (line.every((byte) => BLANK.has(byte))) continue;
    const where = `${file}:${number}`;
    lines.set(where, () => {
      if (line.length > LIMIT) {
        throw new TreewardError('TASK_E_HUGE', `${where}: ${line.length} bytes are too many for a row`, {
          data: { file: where, size: line.length, limit: LIMIT },
        });
      }
      return decode(line, where);
    });
  }
  return lines;
}

/** Space, tab, carriage return. */
const BLANK = new Set([0x20, 0x09, 0x0d]);

export const normaliseLines = (text: string): string => text.replace(/\r\n?/g, '\n');
