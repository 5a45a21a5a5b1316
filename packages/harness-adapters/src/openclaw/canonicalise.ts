import type { ToolCallPart } from '@treeward/messages';
import { canonicaliser } from '../canonical/canonicaliser.js';

const ALIASES: Readonly<Record<string, string>> = { bash: 'exec', 'apply-patch': 'apply_patch' };

/** OpenClaw 2026.5 runs `Bash` or `Read` as `exec` or `read`, and says so in its history. */
function call(part: ToolCallPart): ToolCallPart {
  const name = part.name.trim().toLowerCase();
  return { ...part, name: Object.hasOwn(ALIASES, name) ? (ALIASES[name] as string) : name };
}

/** A failed tool is a JSON envelope around one sentence. */
function result(text: string, called: ToolCallPart | undefined): { text: string; isError?: boolean } {
  if (!text.startsWith('{')) return { text };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { text };
  }
  const { status, tool, error, ...rest } = value as Record<string, unknown>;
  const envelope =
    status === 'error' &&
    typeof error === 'string' &&
    typeof tool === 'string' &&
    Object.keys(rest).length === 0;
  return envelope && (!called || called.name === tool) ? { text: error, isError: true } : { text };
}

/** Its gateway puts the minute before a message, and takes it off in later turns. */
export const untimed = (text: string): string =>
  text.replace(/^(?:\[[A-Z][a-z]{2} \d{4}-\d{2}-\d{2} \d{2}:\d{2} [^\]\n]+\]\s*)+/, '');

/**
 * From 2026.9 on, what it thinks the model should know right now ends every request, and is gone from the next one. In the
 * same frame a sub-agent's result reaches its parent: that is the conversation itself and stays.
 */
const INTERNAL = /\s*<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>[\s\S]*?(?:<<<END_OPENCLAW_INTERNAL_CONTEXT>>>|$)/g;
const RESULT = '[Internal task completion event]';

const user = (text: string): string =>
  untimed(text.replace(INTERNAL, (block) => (block.includes(RESULT) ? block : '')));

export const canonicaliseOpenclaw = canonicaliser({ call, result, user });
