import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { RunFolder } from '@treeward/base';
import { parseConfig } from './config.js';
import { planHeldOut, spreadHarnesses } from './plan-step.js';

const folder = mkdtempSync(join(tmpdir(), 'plan-step-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('spreadHarnesses', () => {
  it('interleaves by share', () => {
    expect(spreadHarnesses({ a: 2, b: 1 })).toEqual(['a', 'b', 'a']);
    expect(spreadHarnesses({ a: 5, b: 1 }, 12).filter((name) => name === 'b')).toHaveLength(2);
  });

  it('gives each harness its count exactly, whatever the counts', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.nat(9)), (counts) => {
        const given = spreadHarnesses(counts);
        for (const [name, count] of Object.entries(counts))
          expect(given.filter((other) => other === name)).toHaveLength(count);
      }),
    );
  });
});

describe('the held-out tasks', () => {
  const planned = (seed: number): string[] => {
    const harnesses = { 'claude-code': 1, pi: 1 };
    const config = parseConfig({ run: { seed }, eval: { tasks: 96, harnesses } }, 'test');
    return planHeldOut(config, new RunFolder(folder), 'before').specs.map(
      ({ harness, labels }) => `${labels['family']} through ${harness}`,
    );
  };

  it('meet both harnesses in every family', () => expect(new Set(planned(0)).size).toBe(2 * 12));

  it('are the same whatever the seed of the run', () => expect(planned(1)).toEqual(planned(0)));
});
