import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { editCommand, readCommand, writeCommand } from './shell-verbs.js';

const text = fc.string({
  unit: fc.constantFrom('a', "'", '"', '$', '\\', '`', '\n', '/', ' ', 'é', '%', '!', '@'),
  maxLength: 20,
});

it('writes, edits and reads exactly what was given', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'shell-verbs-'));
  const sh = (command: string): string =>
    execFileSync('/bin/bash', ['-c', command], { cwd, encoding: 'utf8', stdio: 'pipe' });
  try {
    fc.assert(
      fc.property(text, text, text, (before, old, fresh) => {
        const path = "sub dir/it's.txt";
        sh(writeCommand(path, `${before}<${old}>`));
        expect(readFileSync(join(cwd, path), 'utf8')).toBe(`${before}<${old}>`);
        sh(editCommand(path, `<${old}>`, fresh));
        expect(sh(readCommand(path))).toBe(`${before}<${old}>`.replace(`<${old}>`, () => fresh));
        expect(() => sh(editCommand(path, '>never<', ''))).toThrow(/text not found/);
      }),
      { numRuns: 15 },
    );
  } finally {
    rmSync(cwd, { recursive: true });
  }
});
