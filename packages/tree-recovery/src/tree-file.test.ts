import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeTensors } from '@treeward/base';
import { afterAll, describe, expect, it } from 'vitest';
import { readTree } from './tree-file.js';

const directory = mkdtempSync(join(tmpdir(), 'treeward-tree-file-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('readTree', () => {
  it('names a file that is missing, broken or something else', () => {
    const path = join(directory, 'tree.bin');
    expect(() => readTree(path)).toThrow(expect.objectContaining({ code: 'FILE_E_MISSING' }));
    writeFileSync(path, 'nonsense');
    expect(() => readTree(path)).toThrow(expect.objectContaining({ code: 'TENSOR_E_FILE' }));
    writeTensors(path, new Map());
    expect(() => readTree(path)).toThrow(expect.objectContaining({ code: 'TREE_E_FILE' }));
    const tokens = new Map([['tokens_T', { shape: [1], data: Float32Array.of(1) }]]);
    writeTensors(path, tokens, { format: 'treeward-tree/2', labels: '{}' });
    expect(() => readTree(path)).toThrow(
      /tree\.bin is not a tree: array tokens_T is missing or of another type/,
    );
  });
});
