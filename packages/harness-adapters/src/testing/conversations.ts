import type { Message, ReplyPart } from '@treeward/messages';
import fc from 'fast-check';

/**
 * Synthetic conversations in the shapes that harnesses wrap around them: pieces of wrapping in any order, also broken and
 * nested, so that a rule that only works on tidy input fails. All wording is our own.
 */
const pieces = fc.constantFrom(
  '<system-reminder>',
  '</system-reminder>',
  '<system-reminder>\nmind the gap\n</system-reminder>',
  `<system-reminder>${'a long manual '.repeat(20)}</system-reminder>`,
  '<tool_use_error>',
  '</tool_use_error>',
  '/workspace',
  '/workspace/',
  '/workspace/notes.txt',
  'home/workspace/',
  '{"status":"error","tool":"read","error":"no such file"}',
  '1\talpha\n2\tbeta',
  '\n',
  '3\t',
  ' ',
  '/',
  'word',
);

export const wrappedText = fc.oneof(
  fc.array(pieces, { maxLength: 8 }).map((list) => list.join('')),
  fc.string({ maxLength: 20 }),
);

const name = fc.constantFrom('Read', 'Write', 'Edit', 'Bash', 'read', 'bash', ' exec', 'constructor', 'frob');
const argument = fc.constantFrom('command', 'content', 'new_string', 'replace_all', 'path');
const value = fc.oneof(
  wrappedText,
  fc.boolean(),
  fc.constantFrom('cd /workspace && cd /workspace && ls', 'a  \nb\t\r\n c ', 'find . -exec rm {} \\\\\\;'),
);

const id = fc.constantFrom('a', 'b', 'c', '__proto__');

export const assistant = fc
  .array(
    fc.oneof(
      wrappedText.map((text): ReplyPart => ({ type: 'text', text })),
      fc
        .record({ id, name, arguments: fc.dictionary(argument, value) })
        .map((call): ReplyPart => ({ type: 'tool_call', ...call })),
    ),
    { maxLength: 3 },
  )
  .map((parts): Message => ({ role: 'assistant', parts }));

const message: fc.Arbitrary<Message> = fc.oneof(
  wrappedText.map((text): Message => ({ role: 'system', text })),
  wrappedText.map((text): Message => ({ role: 'user', text })),
  assistant,
  fc
    .record({ text: wrappedText, callId: id, failed: fc.boolean() })
    .map(({ text, callId, failed }): Message => ({
      role: 'tool',
      callId,
      text,
      ...(failed && { isError: true }),
    })),
);

export const conversation = fc.array(message, { maxLength: 10 });
