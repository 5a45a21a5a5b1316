import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder that is removed when the test `t` ends. */
export function scratchFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'treeward-tools-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
