import { canonicalKey, type Message } from '@treeward/messages';
import { describe, expect, it } from 'vitest';
import { canonicaliseOpenclaw as canonicalise } from './canonicalise.js';

const call = (name: string): Message => ({
  role: 'assistant',
  parts: [{ type: 'tool_call', id: 't', name, arguments: { path: 'a' } }],
});
const after = (name: string, text: string): Message =>
  canonicalise([call(name), { role: 'tool', callId: 't', text }])[1]!;

describe('what OpenClaw wraps', () => {
  it.each([
    ['Bash', 'exec'],
    ['bash', 'exec'],
    ['Read', 'read'],
    ['constructor', 'constructor'],
  ])('meets %s again as %s', (sampled, returned) => {
    const key = (name: string): string => canonicalKey(canonicalise([call(name)])[0]!);
    expect(key(sampled)).toBe(key(returned));
  });

  it('takes a failure out of its envelope', () => {
    const envelope = JSON.stringify(
      { status: 'error', tool: 'read', error: "no file '/workspace/a'" },
      null,
      2,
    );
    expect(after('Read', envelope)).toEqual({
      role: 'tool',
      callId: '#0',
      text: "no file 'a'",
      isError: true,
    });
  });

  it('sets aside what ends every request and is in no history', () => {
    const context = '<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nnow\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>';
    const asked: Message = { role: 'user', text: 'Do it.' };
    expect(canonicalise([asked, { role: 'user', text: context }])).toEqual([asked]);
    expect(canonicalise([{ role: 'user', text: `Do it.\n\n${context}` }])).toEqual([asked]);
  });

  it('keeps what a sub-agent found, which comes in the same frame', () => {
    const begin = '<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>';
    const text = `${begin}\n[Internal task completion event]\nResult of B.\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>`;
    expect(canonicalise([{ role: 'user', text }])).toEqual([{ role: 'user', text }]);
  });

  it.each([
    ['another tool', '{"status":"error","tool":"exec","error":"x"}'],
    ['more fields', '{"status":"error","tool":"read","error":"x","code":1}'],
    ['a file of JSON', '{"a":1}'],
    ['broken JSON', '{"status":"error"'],
  ])('leaves %s alone', (_, text) => {
    expect(after('read', text)).toEqual({ role: 'tool', callId: '#0', text });
  });
});
