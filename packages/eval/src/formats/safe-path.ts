import { posix } from 'node:path';
import { TreewardError } from '@treeward/base';

/**
 * A path inside a workspace, normalised. Foreign tasks may name none that leads out of it.
 * @throws TreewardError TASK_E_PATH
 */
export function safePath(path: string, file: string): string {
  const plain = posix.normalize(path.replaceAll('\\', '/'));
  if (
    plain === '.' ||
    plain === '' ||
    posix.isAbsolute(plain) ||
    /^\.\.(\/|$)/.test(plain) ||
    plain.includes('\0')
  ) {
    throw new TreewardError(
      'TASK_E_PATH',
      `${file}: the path ${JSON.stringify(path)} is not inside the workspace`,
      {
        data: { file, field: path },
        hints: ['paths are relative to the workspace and do not climb out of it'],
      },
    );
  }
  return plain.replace(/\/$/, '');
}
