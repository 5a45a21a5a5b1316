import type { Json } from '@treeward/telemetry';

/** Words without punctuation: quotes, tags and line breaks that a harness puts around a text do not matter. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
}

/** One tool call of a reply: all strings in its arguments, and the long ones, where a task for an agent would stand. */
export interface ToolUse {
  id: string;
  name: string;
  text: string;
  tasks: readonly string[];
}

export interface ReplyFacts {
  text: string;
  uses: ToolUse[];
}

/** What an assistant turn says and asks for. Parts of an unknown form are left out. */
export function readParts(parts: readonly Json[]): ReplyFacts {
  const texts: string[] = [];
  const uses: ToolUse[] = [];
  for (const part of parts) {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) continue;
    if (part['type'] === 'text' && typeof part['text'] === 'string') texts.push(part['text']);
    if (part['type'] === 'tool_call') {
      const strings: string[] = [];
      collectStrings(part['arguments'] ?? null, strings);
      const longest = Math.max(0, ...strings.map((one) => one.length));
      uses.push({
        id: typeof part['id'] === 'string' ? part['id'] : '',
        name: typeof part['name'] === 'string' ? part['name'] : '',
        text: strings.join('\n'),
        tasks: strings.filter((one) => one.length >= longest / 2),
      });
    }
  }
  return { text: texts.join(''), uses };
}

function collectStrings(value: Json, into: string[]): void {
  if (typeof value === 'string') into.push(value);
  else if (Array.isArray(value)) for (const item of value) collectStrings(item, into);
  else if (typeof value === 'object' && value !== null) {
    for (const item of Object.values(value)) collectStrings(item, into);
  }
}

/** Times, counters, hashes and ids differ from one rendering to the next without meaning anything. */
const VOLATILE = /\b[0-9a-f]{8}-[0-9a-f-]{20,}\b|\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b|\d+/gi;

export function withoutVolatile(text: string): string {
  return text.replace(VOLATILE, '#').trim();
}

/** Share of the longer text that the two have in common at their beginnings and ends. */
export function similarity(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  const longer = Math.max(a.length, b.length);
  if (longer === 0) return 1;
  let head = 0;
  while (head < shorter && a.charCodeAt(head) === b.charCodeAt(head)) head++;
  let tail = 0;
  while (tail < shorter - head && a.charCodeAt(a.length - 1 - tail) === b.charCodeAt(b.length - 1 - tail))
    tail++;
  return (head + tail) / longer;
}
