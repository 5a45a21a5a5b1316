import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { confidenceOf, evidencePattern, readCalibration } from './calibration.js';
import { EVIDENCE } from './evidence.js';

const directory = mkdtempSync(join(tmpdir(), 'treeward-calibration-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

it('takes what was measured for a pattern, else what its type is worth, less for each doubt', () => {
  const table = { version: 1 as const, types: { continue: { 'graft+messages': 0.9, '*': 0.8 } } };
  expect(confidenceOf('continue', ['messages', 'graft'], table)).toBe(0.9);
  expect(confidenceOf('continue', ['messages'], table)).toBe(0.8);
  expect(confidenceOf('continue', ['messages', 'header-against'], table)).toBeLessThan(0.8);
  expect(confidenceOf('spawn', ['task-text'], table)).toBe(0.5);
});

it('the committed table knows only patterns of known evidence', () => {
  const { types } = readCalibration();
  for (const patterns of Object.values(types)) {
    expect(patterns['*']).toBeGreaterThan(0);
    for (const pattern of Object.keys(patterns)) {
      if (pattern === '*') continue;
      expect(evidencePattern(pattern.split('+'))).toBe(pattern);
      for (const code of pattern.split('+')) expect(EVIDENCE).toHaveProperty(code);
    }
  }
});

it('names a table that is none', () => {
  const path = join(directory, 'table.json');
  for (const text of ['nonsense', '{"version":2,"types":{}}', '{"version":1,"types":{"retry":{"*":7}}}']) {
    writeFileSync(path, text);
    expect(() => readCalibration(path)).toThrow(expect.objectContaining({ code: 'TREE_E_CALIBRATION' }));
  }
});
