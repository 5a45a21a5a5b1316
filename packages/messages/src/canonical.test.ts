import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicaliseArguments, canonicalJson, canonicalKey, toolManifestHash } from './canonical.js';
import { args } from './testing/arbitraries.js';
import type { Message, ToolSpec } from './types.js';

/** The same value with its keys put in at every depth in reverse. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, reversed(item)]),
  );
}

const assistant = (...parts: Extract<Message, { role: 'assistant' }>['parts']): Message => ({
  role: 'assistant',
  parts,
});

describe('canonical form', () => {
  it('does not depend on the order of keys', () => {
    fc.assert(
      fc.property(args, (value) => {
        const other = reversed(value) as Record<string, unknown>;
        expect(canonicalJson(other)).toBe(canonicalJson(value));
        const call = (input: Record<string, unknown>): Message =>
          assistant({ type: 'tool_call', id: '1', name: 'f', arguments: input });
        expect(canonicalKey(call(other))).toBe(canonicalKey(call(value)));
        expect(JSON.stringify(canonicaliseArguments(other))).toBe(
          JSON.stringify(canonicaliseArguments(value)),
        );
        expect(canonicaliseArguments(value)).toEqual(value);
      }),
    );
  });

  it('is JSON of the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('keeps a key named __proto__', () => {
    const value = JSON.parse('{"b":1,"__proto__":{"x":2}}') as Record<string, unknown>;
    expect(JSON.stringify(canonicaliseArguments(value))).toBe('{"__proto__":{"x":2},"b":1}');
  });
});

describe('canonicalKey', () => {
  it('ignores call ids, empty texts, how text is cut and where it stands among calls', () => {
    const call = (id: string) => ({ type: 'tool_call' as const, id, name: 'f', arguments: { a: 1 } });
    const text = (value: string) => ({ type: 'text' as const, text: value });
    const key = canonicalKey(assistant(text('one'), call('x')));
    expect(canonicalKey(assistant(text('o'), text(''), text('ne'), call('y')))).toBe(key);
    expect(canonicalKey(assistant(call('z'), text('one')))).toBe(key);
    expect(canonicalKey(assistant())).toBe(canonicalKey(assistant(text(''))));
    expect(canonicalKey({ role: 'tool', callId: 'a', text: 'r' })).toBe(
      canonicalKey({ role: 'tool', callId: 'b', text: 'r', isError: false }),
    );
  });

  it('tells apart roles, texts, names, arguments, failures and the number of calls', () => {
    const call = { type: 'tool_call' as const, id: '', name: 'f', arguments: {} };
    const messages: Message[] = [
      { role: 'system', text: 'x' },
      { role: 'user', text: 'x' },
      { role: 'user', text: 'y' },
      { role: 'tool', callId: '', text: 'x' },
      { role: 'tool', callId: '', text: 'x', isError: true },
      assistant({ type: 'text', text: 'x' }),
      assistant(call),
      assistant(call, call),
      assistant({ ...call, name: 'g' }),
      assistant({ ...call, arguments: { a: null } }),
    ];
    expect(new Set(messages.map(canonicalKey)).size).toBe(messages.length);
  });
});

describe('toolManifestHash', () => {
  const tool: ToolSpec = { name: 'f', description: 'd', parameters: { type: 'object', properties: {} } };
  it('changes with what a tool is, not with the order of schema keys', () => {
    const hash = toolManifestHash([tool]);
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(toolManifestHash([{ ...tool, parameters: { properties: {}, type: 'object' } }])).toBe(hash);
    expect(toolManifestHash([{ ...tool, description: 'e' }])).not.toBe(hash);
    expect(toolManifestHash([tool, tool])).not.toBe(hash);
  });
});
