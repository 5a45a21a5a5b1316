import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { applySteps } from './apply-steps.js';
import { edit, exec, read, write } from './steps.js';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'treeward-steps-'));
  writeFileSync(join(directory, 'a.txt'), 'one two one');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('does what tools do and returns what they return', () => {
  const results = applySteps(directory, [
    read('a.txt'),
    edit('a.txt', 'two', '$& three'),
    write('sub/b.txt', 'new'),
    exec('cat a.txt sub/b.txt > c.txt; echo said'),
  ]);
  expect(results).toEqual(['one two one', '', '', 'said\n']);
  expect(readFileSync(join(directory, 'c.txt'), 'utf8')).toBe('one $& three onenew');
});

test.each([
  ['missing file', read('none.txt'), /no such file/],
  ['ambiguous edit', edit('a.txt', 'one', 'x'), /occurs 2 times/],
  ['absent text', edit('a.txt', 'zero', 'x'), /occurs 0 times/],
  ['empty text', edit('a.txt', '', 'x'), /occurs/],
  ['failing command', exec('echo bad >&2; exit 3'), /exit 3: bad/],
  ['absolute path', write('/tmp/x', ''), /leaves the workspace/],
  ['parent path', write('a/../../x', ''), /leaves the workspace/],
])('%s is an error that names the step', (_name, step, message) => {
  expect(() => applySteps(directory, [read('a.txt'), step])).toThrow(
    expect.objectContaining({
      code: 'DATASET_E_STEP',
      message: expect.stringMatching(message) as string,
      data: { step: 1 },
    }),
  );
});
