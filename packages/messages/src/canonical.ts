import { createHash } from 'node:crypto';
import type { Message, ToolSpec } from './types.js';

/**
 * JSON with sorted keys and no white space: two values with equal content give the same string, whatever order a
 * harness put the keys in. Properties that are `undefined` are left out, as JSON does.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`;
}

/** The same arguments with keys sorted at every depth (integer-like keys come first: JavaScript orders them itself). */
export function canonicaliseArguments(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return sorted(args) as Record<string, unknown>;
}

function sorted(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(sorted);
  // fromEntries defines properties, so that a key named `__proto__` stays a key.
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  );
}

/**
 * Equal keys = the same message for matching. Call ids are left out (harnesses rewrite them), argument order does not
 * matter, null content and empty text are the same, a turn's text parts count as one.
 */
export function canonicalKey(message: Message): string {
  switch (message.role) {
    case 'system':
      return `s:${message.text}`;
    case 'user':
      return `u:${message.text}`;
    case 'tool':
      return `${message.isError ? 'e' : 't'}:${message.text}`;
    case 'assistant': {
      const [only] = message.parts;
      if (message.parts.length === 1 && only?.type === 'text') return `a:[${JSON.stringify(only.text)}]`;
      // Text first: Chat Completions cannot say where between the calls a text stood.
      const text = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
      const calls = message.parts.flatMap((part) =>
        part.type === 'tool_call' ? [[part.name, part.arguments]] : [],
      );
      return `a:${canonicalJson([text, ...calls])}`;
    }
  }
}

/** sha256 (hex) over names, descriptions and schemas, in the order in which the harness offered them. */
export function toolManifestHash(tools: readonly ToolSpec[]): string {
  const manifest = tools.map(({ name, description, parameters }) => [name, description, parameters]);
  return createHash('sha256').update(canonicalJson(manifest)).digest('hex');
}
