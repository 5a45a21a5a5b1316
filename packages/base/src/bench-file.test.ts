import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { writeBenchRows } from './bench-file.js';
import { readJson } from './files.js';

it('writes schema, machine, seeds and rows', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'bench-')), 'rows.json');
  const rows = [{ name: 'a/b', value: 2, unit: 'ms', better: 'lower', n: 3 }] as const;
  writeBenchRows(file, rows, { seeds: [1, 2] });
  expect(readJson(file)).toEqual({
    schema: 1,
    machine: expect.objectContaining({ cores: expect.any(Number), node: process.version }),
    seeds: [1, 2],
    rows,
  });
});
