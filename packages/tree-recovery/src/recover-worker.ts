import { RolloutFolder, toPlainError, type PlainError } from '@treeward/base';
import { recoverDirectory } from './recover-directory.js';
import { summarise, type TreeSummary } from './summary.js';
import { writeTree } from './tree-file.js';

export interface RecoverTask {
  /** Folder of one rollout; `tree.bin` is written into it. */
  directory: string;
}

/** Errors as plain objects: a class does not survive the way between threads, and one bad record is no exception. */
export type RecoverOutcome =
  { ok: true; path: string; summary: TreeSummary } | { ok: false; error: PlainError };

/** The task of a Piscina thread: record in, `tree.bin` and a summary out. */
export default function recoverInWorker({ directory }: RecoverTask): RecoverOutcome {
  try {
    const path = new RolloutFolder(directory).tree;
    const tree = recoverDirectory(directory);
    writeTree(path, tree);
    return { ok: true, path, summary: summarise(tree) };
  } catch (error) {
    return { ok: false, error: toPlainError(error) };
  }
}
