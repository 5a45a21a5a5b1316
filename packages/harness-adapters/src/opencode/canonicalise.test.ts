import type { Message } from '@treeward/messages';
import { expect, it } from 'vitest';
import { canonicaliseOpencode } from './canonicalise.js';

const call = (name: string, args: Record<string, unknown>): Message => ({
  role: 'assistant',
  parts: [{ type: 'tool_call', id: 'c', name, arguments: args }],
});

it('shows a file as it is', () => {
  const view = (lines: string, end: string): Message[] =>
    canonicaliseOpencode([
      call('read', { filePath: 'a.txt' }),
      {
        role: 'tool',
        callId: 'c',
        text: `<path>/workspace/a.txt</path>\n<type>file</type>\n<content>\n${lines}\n${end}</content>`,
      },
    ]);
  expect(view('1: alpha\n2: 2: beta\n', '(End of file - total 2 lines)\n')[1]).toMatchObject({
    text: 'alpha\n2: beta\n',
  });
  expect(view('1: alpha', '')[1]).toMatchObject({ text: 'alpha' });
});

it('gives a call of an unknown tool its name back', () => {
  expect(canonicaliseOpencode([call('invalid', { tool: 'frob', error: 'no such tool' })])).toEqual(
    canonicaliseOpencode([call('frob', {})]),
  );
});
