import { createReadStream, existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { isAbsolute, join, normalize } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { extractText } from '../extract/extract-text.js';
import { filesBelow } from '../formats/files-below.js';
import type { Rubric } from '../types.js';
import type { EvidenceFile } from './prompt.js';

export interface Evidence {
  outputFiles: EvidenceFile[];
  otherFiles: EvidenceFile[];
  /** Criteria about a file that is not there. */
  missing: Set<number>;
}

/** Never shown to a judge: what tools leave behind, not work. */
const NOISE = /(^|\/)(\.git|node_modules|__pycache__|\.pytest_cache|\.venv)\//;

/**
 * What the agent left, for a judge: the files that the rubric is about (else every changed one), and the other changed ones. Links
 * are not followed, so that nothing outside the workspace can come into a prompt.
 */
export async function gatherEvidence(
  workspace: string,
  inputs: string | null,
  rubric: Rubric,
): Promise<Evidence> {
  const targets = new Set(rubric.criteria.flatMap(({ filePath }) => (filePath === null ? [] : [filePath])));
  const missing = new Set(
    rubric.criteria.flatMap(({ filePath }, index) =>
      filePath !== null && !isFile(workspace, filePath) ? [index] : [],
    ),
  );
  const changed: string[] = [];
  for (const { path } of filesBelow(workspace)) {
    if (
      !NOISE.test(path) &&
      !targets.has(path) &&
      (await differs(join(workspace, path), inputs && join(inputs, path)))
    )
      changed.push(path);
  }
  const shown = [...targets].filter((path) => isFile(workspace, path));
  const read = async (paths: readonly string[]): Promise<EvidenceFile[]> => {
    const files: EvidenceFile[] = [];
    for (const path of paths) files.push({ path, ...(await extractText(join(workspace, path))) });
    return files;
  };
  return {
    outputFiles: await read(targets.size > 0 ? shown : changed),
    otherFiles: await read(targets.size > 0 ? changed : []),
    missing,
  };
}

/** A regular file inside the workspace, reached without a link. */
function isFile(workspace: string, path: string): boolean {
  if (isAbsolute(path) || normalize(path).startsWith('..')) return false;
  const full = join(workspace, path);
  if (!existsSync(full) || !lstatSync(full).isFile()) return false;
  return realpathSync(full) === join(realpathSync(workspace), path);
}

async function differs(path: string, before: string | null): Promise<boolean> {
  if (before === null || !existsSync(before) || statSync(before).size !== statSync(path).size) return true;
  return (await digest(path)) !== (await digest(before));
}

async function digest(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
