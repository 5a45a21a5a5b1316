import type { ToolCallPart } from '@treeward/messages';
import { canonicaliser } from '../canonical/canonicaliser.js';

/**
 * Claude Code 2.1 edits the calls it sends back: it fills in a default, cuts blanks at line ends of what it writes, and
 * cuts a `cd` to the place where the command runs anyway. The same is done to what was sampled, so the two meet.
 */
function call(part: ToolCallPart): ToolCallPart {
  const args = { ...part.arguments };
  if (part.name === 'Edit') {
    if (args['replace_all'] === false) delete args['replace_all'];
    cutBlanks(args, 'new_string');
  }
  if (part.name === 'Write') cutBlanks(args, 'content');
  if (part.name === 'Bash' && typeof args['command'] === 'string') {
    args['command'] = args['command'].replace(/^(?:cd \/workspace && )+/, '').replace(/\\{2,};/g, '\\;');
  }
  return { ...part, arguments: args };
}

function cutBlanks(args: Record<string, unknown>, name: string): void {
  const value = args[name];
  if (typeof value === 'string') args[name] = value.replace(/[^\S\r\n]+(?=\r|\n|$)/g, '');
}

function result(text: string, called: ToolCallPart | undefined): { text: string; isError?: boolean } {
  const failed = /^<tool_use_error>([\s\S]*)<\/tool_use_error>$/.exec(text);
  if (failed) return { text: failed[1] ?? '', isError: true };
  return { text: called?.name === 'Read' ? stripLineNumbers(text) : text };
}

/**
 * A file view is `7<tab>text` per line, counting up. Stops at the first line that is not the next number: notes of
 * the harness follow the view, never stand in it.
 */
export function stripLineNumbers(text: string): string {
  const lines = text.split('\n');
  let expected: number | null = null;
  let end = 0;
  const plain: string[] = [];
  for (const line of lines) {
    const numbered = /^ *(\d+)(?:\t|→)/.exec(line);
    if (!numbered || (expected !== null && Number(numbered[1]) !== expected)) break;
    expected = Number(numbered[1]) + 1;
    plain.push(line.slice(numbered[0].length));
    end++;
  }
  return [...plain, ...lines.slice(end)].join('\n');
}

export const canonicaliseClaudeCode = canonicaliser({ call, result });
