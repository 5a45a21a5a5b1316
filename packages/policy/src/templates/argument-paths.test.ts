import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { flattenArguments, nestArguments, requiredPaths } from './argument-paths.js';

const name = fc.stringMatching(/^[a-zA-Z_]{1,8}$/);

describe('argument paths', () => {
  it('spell a list of objects one field at a time', () => {
    const args = {
      path: 'a.txt',
      edits: [
        { oldText: 'x', newText: 'y' },
        { oldText: 'z', newText: '' },
      ],
    };
    expect(flattenArguments(args)).toEqual([
      ['path', 'a.txt'],
      ['edits.0.oldText', 'x'],
      ['edits.0.newText', 'y'],
      ['edits.1.oldText', 'z'],
      ['edits.1.newText', ''],
    ]);
  });

  it('nest what was flattened, for any names and texts', () => {
    const leaf = fc.string();
    const list = fc.array(fc.dictionary(name, leaf, { minKeys: 1 }), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(fc.dictionary(name, fc.oneof(leaf, list)), (args) => {
        expect(nestArguments(flattenArguments(args))).toEqual({ ...args });
      }),
    );
  });

  it.each([
    ['a gap', [['e.1.a', 'x']]],
    [
      'a value and a list',
      [
        ['e', 'x'],
        ['e.0.a', 'y'],
      ],
    ],
    [
      'a list and a value',
      [
        ['e.0.a', 'y'],
        ['e', 'x'],
      ],
    ],
  ] as [string, [string, string][]][])('refuse %s', (_, entries) => {
    expect(nestArguments(entries)).toBeNull();
  });

  it('show the required fields of a required list', () => {
    const item = {
      type: 'object',
      properties: { oldText: {}, newText: {}, all: {} },
      required: ['newText', 'oldText'],
    };
    const parameters = {
      type: 'object',
      properties: { path: {}, edits: { type: 'array', items: item } },
      required: ['edits', 'path'],
    };
    expect(requiredPaths({ name: 'edit', description: '', parameters })).toEqual([
      'path',
      'edits.0.oldText',
      'edits.0.newText',
    ]);
  });
});
