import { readFileSync, statSync } from 'node:fs';
import { TreewardError } from '@treeward/base';

/** A task description larger than this is not one. */
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
  try {
    // The decoder takes a byte order mark away.
    return normaliseLines(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file)));
  } catch (cause) {
    throw new TreewardError('TASK_E_ENCODING', `${file} is not UTF-8`, { cause, data: { file } });
  }
}

export const normaliseLines = (text: string): string => text.replace(/\r\n?/g, '\n');
