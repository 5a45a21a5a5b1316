import { canonicalKey, type Message, type ReplyPart } from '@treeward/messages';
import { describe, expect, it } from 'vitest';
import { canonicaliseClaudeCode as canonicalise, stripLineNumbers } from './canonicalise.js';

const call = (name: string, args: Record<string, unknown>, id = 't'): Message => ({
  role: 'assistant',
  parts: [{ type: 'tool_call', id, name, arguments: args }],
});
const result = (text: string, isError = false): Message => ({
  role: 'tool',
  callId: 't',
  text,
  ...(isError && { isError }),
});
const lastText = (messages: Message[]): string => (canonicalise(messages).at(-1) as { text: string }).text;

describe('what Claude Code wraps', () => {
  it('leaves the bare instruction of the first user message', () => {
    const manual = `<system-reminder>\n${'how to sign letters. '.repeat(30)}\n</system-reminder>\n`;
    expect(canonicalise([{ role: 'user', text: `${manual}\nSort the notes.` }])).toEqual([
      { role: 'user', text: 'Sort the notes.' },
    ]);
  });

  it('shows a file as it is, not its view', () => {
    expect(lastText([call('Read', { file_path: 'a' }), result('1\talpha\n2\t\n3\t2\tbeta\n4\t')])).toBe(
      'alpha\n\n2\tbeta\n',
    );
  });

  it('leaves numbered lines that a command printed', () => {
    expect(lastText([call('Bash', { command: 'cat -n a' }), result('1\talpha')])).toBe('1\talpha');
  });

  it('strips a file of numbered lines once, also on a second pass', () => {
    const once = canonicalise([call('Read', { file_path: 'a' }), result('1\t1\tone\n2\t2\ttwo')]);
    expect(canonicalise(once)).toEqual(once);
    expect((once.at(-1) as { text: string }).text).toBe('1\tone\n2\ttwo');
  });

  it('takes error tags off and keeps the failure', () => {
    expect(
      canonicalise([call('Edit', {}), result('<tool_use_error>not /workspace/a</tool_use_error>', true)])[1],
    ).toEqual({ role: 'tool', callId: '#0', text: 'not a', isError: true });
  });
});

describe('stripLineNumbers', () => {
  it.each([
    ['7\tg\n8\th', 'g\nh'],
    ['  7→g\n  8→h', 'g\nh'],
    ['1\ta\n3\tb', 'a\n3\tb'],
    ['plain\n1\ta', 'plain\n1\ta'],
    ['1\ta\n\n<note>', 'a\n\n<note>'],
    ['', ''],
  ])('%j', (view, plain) => {
    expect(stripLineNumbers(view)).toBe(plain);
  });
});

describe('calls that Claude Code rewrites in its history', () => {
  it.each([
    [
      'fills in a default',
      'Edit',
      { file_path: 'a', old_string: 'x ', new_string: 'y' },
      { replace_all: false },
    ],
    [
      'cuts line ends of a new text',
      'Edit',
      { old_string: 'x ', new_string: 'y  \nz\t' },
      { new_string: 'y\nz' },
    ],
    ['cuts line ends of a file', 'Write', { content: 'a \r\nb\t\n' }, { content: 'a\r\nb\n' }],
    ['cuts a cd', 'Bash', { command: 'cd /workspace && ls' }, { command: 'ls' }],
    [
      'repairs an escape',
      'Bash',
      { command: 'find . -exec ls {} \\\\;' },
      { command: 'find . -exec ls {} \\;' },
    ],
  ])('%s: sampled and returned meet', (_, name, sampled, changed) => {
    const key = (args: Record<string, unknown>): string => canonicalKey(canonicalise([call(name, args)])[0]!);
    expect(key({ ...sampled, ...changed })).toBe(key(sampled));
  });

  it('keeps what makes calls differ', () => {
    const kept: ReplyPart = {
      type: 'tool_call',
      id: '#0',
      name: 'Edit',
      arguments: { old_string: 'x ', new_string: ' y', replace_all: true },
    };
    expect(canonicalise([call('Edit', kept.arguments)])).toEqual([{ role: 'assistant', parts: [kept] }]);
  });
});
