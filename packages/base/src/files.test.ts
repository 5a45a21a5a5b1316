import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readJson, writeFileAtomic, writeJsonAtomic } from './files.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'treeward-files-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe('writeFileAtomic', () => {
  it('makes folders, replaces what is there and leaves nothing beside it', () => {
    const path = join(directory, 'a', 'b', 'file.bin');
    writeFileAtomic(path, 'old and longer');
    writeFileAtomic(path, Uint8Array.of(1, 2, 3));
    expect([...readFileSync(path)]).toEqual([1, 2, 3]);
    expect(readdirSync(join(directory, 'a', 'b'))).toEqual(['file.bin']);
    writeFileAtomic(path, '');
    expect(readFileSync(path, 'utf8')).toBe('');
  });

  it('cleans up and keeps the old one when it fails', () => {
    const path = join(directory, 'taken');
    mkdirSync(join(path, 'child'), { recursive: true });
    expect(() => writeFileAtomic(path, 'x')).toThrow();
    expect(readdirSync(directory)).toEqual(['taken']);
    expect(readdirSync(path)).toEqual(['child']);
  });
});

describe('readJson', () => {
  it('reads back what writeJsonAtomic wrote, as text that people can read', () => {
    const path = join(directory, 'x.json');
    const value = { b: [1, null, 'ü'], a: { deep: true } };
    writeJsonAtomic(path, value);
    expect(readJson(path)).toEqual(value);
    expect(readFileSync(path, 'utf8')).toMatch(/^\{\n {2}"b": \[[^]*\}\n$/);
  });

  it('passes over a byte order mark', () => {
    const path = join(directory, 'x.json');
    writeFileAtomic(path, '\uFEFF{"a":1}');
    expect(readJson(path)).toEqual({ a: 1 });
  });

  it('names the file that is missing or broken', () => {
    const path = join(directory, 'x.json');
    expect(() => readJson(path)).toThrow(
      expect.objectContaining({ code: 'FILE_E_MISSING', data: { file: path } }),
    );
    writeFileSync(path, '{"half');
    expect(() => readJson(path)).toThrow(
      expect.objectContaining({ code: 'FILE_E_JSON', message: expect.stringContaining(path) }),
    );
  });
});
