import type { Message } from '@treeward/messages';
import { expect, it } from 'vitest';
import { canonicaliseCodex } from './canonicalise.js';

const texts = (...messages: Message[]): string[] =>
  canonicaliseCodex(messages).flatMap((message) => (message.role === 'assistant' ? [] : [message.text]));
const tool = (text: string): Message => ({ role: 'tool', callId: 'c', text });
const output = (state: string, text: string): Message =>
  tool(
    `Chunk ID: 0a1b\nWall time: 0.0312 seconds\nProcess ${state}\nOriginal token count: 3\nOutput:\n${text}`,
  );

it('leaves of a command its output and an exit code that is not 0', () => {
  expect(
    texts(
      output('exited with code 0', 'alpha\n'),
      output('exited with code 3', 'alpha\n'),
      output('exited with code 1', ''),
      output('running with session ID 7', 'so far'),
      tool('unsupported call: frob'),
    ),
  ).toEqual([
    'alpha\n',
    'alpha\n(exit code 3)',
    '(exit code 1)',
    'so far\n(still running, session 7)',
    'unsupported call: frob',
  ]);
});

it('drops what the environment is, not what the user says of it', () => {
  const user = (text: string): Message => ({ role: 'user', text });
  expect(
    texts(
      user('<environment_context>\n<cwd>/workspace</cwd>\n</environment_context>'),
      user('Read <environment_context>.'),
    ),
  ).toEqual(['Read <environment_context>.']);
});
