import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { wrappedText } from '../testing/conversations.js';
import { relativePaths, unwrapReminders, unwrapToolText, unwrapUserText } from './wrapping.js';

const reminder = (text: string): string => `<system-reminder>${text}</system-reminder>`;

describe('unwrapReminders', () => {
  it('turns a short one into a note and drops a long one', () => {
    expect(unwrapReminders(`ok${reminder('\nmind the gap\n')}`)).toBe('ok\n[note] mind the gap');
    expect(unwrapReminders(`ok${reminder('x'.repeat(199))}`)).toBe(`ok\n[note] ${'x'.repeat(199)}`);
    expect(unwrapReminders(`ok${reminder('x'.repeat(200))}!`)).toBe('ok!');
    expect(unwrapReminders(reminder(' \n'))).toBe('');
  });

  it('keeps a tag without its other half', () => {
    expect(unwrapReminders('a <system-reminder> b')).toBe('a <system-reminder> b');
  });
});

describe('relativePaths', () => {
  it.each([
    ["open '/workspace/a.txt' and /workspace/sub/b.txt", "open 'a.txt' and sub/b.txt"],
    ['/workspace//workspace/a', 'workspace/a'],
    ['cwd is /workspace.', 'cwd is /workspace.'],
    ['/workspace/ itself', '/workspace/ itself'],
    ['/home/workspace/a ~/workspace/b ./workspace/c', '/home/workspace/a ~/workspace/b ./workspace/c'],
    ['/workspaces/a', '/workspaces/a'],
  ])('%s', (text, expected) => {
    expect(relativePaths(text)).toBe(expected);
  });
});

it('the two cleaners are idempotent', () => {
  fc.assert(
    fc.property(wrappedText, (text) => {
      for (const clean of [unwrapUserText, unwrapToolText]) expect(clean(clean(text))).toBe(clean(text));
    }),
    { numRuns: 2000 },
  );
});

it('a file keeps its last line break, an instruction does not', () => {
  expect(unwrapToolText('a\n')).toBe('a\n');
  expect(unwrapUserText('\n\nDo it.\n')).toBe('Do it.');
  expect(unwrapToolText(reminder('nothing in it'))).toBe('[note] nothing in it');
});
