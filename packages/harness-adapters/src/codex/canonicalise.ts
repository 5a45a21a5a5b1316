import type { ToolCallPart } from '@treeward/messages';
import { canonicaliser } from '../canonical/canonicaliser.js';

/** What the environment is; no instruction of the task. */
const ENVIRONMENT = /^\s*<environment_context>[\s\S]*<\/environment_context>\s*$/;

/** `Chunk ID: …` (random), wall time (measured), exit code, token count, then the output itself. */
const ENVELOPE =
  /^(?:Chunk ID: \S+\n)?Wall time: [\d.]+ seconds\nProcess (?:exited with code (-?\d+)|running with session ID (\d+))\n(?:Original token count: \d+\n)?Output:\n/;

/** codex wraps the output of a command in facts that differ between two runs of it. */
function result(text: string, _called: ToolCallPart | undefined): { text: string } {
  const head = ENVELOPE.exec(text);
  if (!head) return { text };
  const output = text.slice(head[0].length);
  const [, code, session] = head;
  const note =
    session !== undefined ? `(still running, session ${session})` : code === '0' ? '' : `(exit code ${code})`;
  return { text: note === '' ? output : `${output.replace(/\n$/, '')}\n${note}`.replace(/^\n/, '') };
}

export const canonicaliseCodex = canonicaliser({
  result,
  user: (text) => (ENVIRONMENT.test(text) ? '' : text),
});
