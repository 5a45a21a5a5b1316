import { readFileSync } from 'node:fs';
import type { TaskFile } from '../types.js';

/** Where our sandboxes have the workspace. */
export const WORKSPACE = '/workspace';

/** A pattern with the flag `g` and what stands in its place. */
export type Rewrite = readonly [RegExp, string];

/** OpenClaw's places for the workspace, which foreign prompts and checkers have written into them. */
const OPENCLAW: readonly Rewrite[] = [
  [/(?:\/root|\$HOME|\$\{HOME\}|~)\/\.openclaw\/workspace(?:\/workspace)?(?![\w-])/g, WORKSPACE],
];

/** The text with the places of another machine replaced by ours; whether anything was. */
export function rewritePaths(text: string, rewrites = OPENCLAW): { text: string; changed: boolean } {
  const rewritten = rewrites.reduce((now, [from, to]) => now.replace(from, to), text);
  return { text: rewritten, changed: rewritten !== text };
}

/** As {@link rewritePaths}, in a file of text; a binary one stays as it is. */
export function rewriteFile(file: TaskFile, rewrites = OPENCLAW): { file: TaskFile; changed: boolean } {
  const { content } = file;
  const bytes = Buffer.from(
    typeof content === 'object' && 'from' in content ? readFileSync(content.from) : content,
  );
  if (bytes.subarray(0, 8192).includes(0)) return { file, changed: false };
  const { text, changed } = rewritePaths(bytes.toString('utf8'), rewrites);
  return changed ? { file: { ...file, content: text }, changed } : { file, changed };
}
