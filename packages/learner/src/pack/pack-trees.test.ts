import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RolloutTree } from '@treeward/tree-recovery';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readBatch, writeBatch } from '../batch-file.js';
import { tree, type TestNode } from '../testing/trees.js';
import { packTrees } from './pack-trees.js';

// A prompt with a failed attempt and its retry, after which one more turn follows; and a trailing observation.
const branching = tree([
  { kind: 0, parent: -1, tokens: [10, 11] },
  { kind: 1, parent: 0, tokens: [20] },
  { kind: 1, parent: 0, tokens: [21, 22] },
  { kind: 0, parent: 2, tokens: [30] },
  { kind: 1, parent: 3, tokens: [40, 41] },
  { kind: 0, parent: 4, tokens: [50] },
]);

describe('packTrees', () => {
  it('makes a row per node, continuing its parent, and owns every sampled token once', () => {
    const batch = packTrees([branching], [0.5]);
    expect([...batch.rowStart_B1]).toEqual([0, 2, 3, 5, 6, 8]);
    expect([...batch.parent_B!]).toEqual([-1, 0, 0, 2, 3]);
    expect([...batch.tokens_T]).toEqual([10, 11, 20, 21, 22, 30, 40, 41]);
    expect([...batch.owned_T]).toEqual([0, 0, 1, 1, 1, 0, 1, 1]);
    expect([...batch.advantages_T]).toEqual([0, 0, 0.5, 0.5, 0.5, 0, 0.5, 0.5]);
    expect([...batch.version_B!]).toEqual([-1, 0, 0, -1, 0]);
    expect(batch.bannedIds).toEqual([0, 1]);
    expect(batch.temperature_T[2]).toBeCloseTo(0.8);
    expect(batch.rolloutLogprobs_T[0]).toBeNaN();
    expect(batch.rolloutLogprobs_T[7]).toBeCloseTo(-0.41);
  });

  it('says what a critic needs of the calls', () => {
    const { calls } = packTrees([branching], [0.5]);
    expect(calls).toMatchObject({ callOffset_R1: Int32Array.of(0, 3), rollout_R: Int32Array.of(0) });
    expect([...calls!.action_C]).toEqual([1, 2, 4]);
    expect([...calls!.call_B]).toEqual([0, 0, 1, 2, 2]);
    expect([...calls!.reward_R]).toEqual([1]);
  });

  it('leaves out null advantages and rejected trees, and does not own untrained calls', () => {
    const rejected: RolloutTree = { ...branching, verdict: { kind: 'rejected', reason: 'x' } };
    const side = tree(
      [
        { kind: 0, parent: -1, tokens: [1] },
        { kind: 1, parent: 0, tokens: [2] },
      ],
      {
        0: { untrained: 'side' },
      },
    );
    const batch = packTrees([branching, rejected, side], [null, 1, 1]);
    expect([...batch.rollout_B]).toEqual([2, 2]);
    expect([...batch.owned_T]).toEqual([0, 0]);
    expect(batch.numRollouts).toBe(3);
  });

  it('adds what one call earns or costs', () => {
    const batch = packTrees([branching], [1], { callAdvantage: (_, call) => (call === 0 ? -0.25 : 0) });
    expect([...batch.advantages_T].filter((_, t) => batch.owned_T[t])).toEqual([0.75, 1, 1, 1, 1]);
  });

  it('takes the workspace as it stood when a call started for its baseline', () => {
    const batch = packTrees([branching], [0.5], { callBaseline: (_, call) => [0.25, null, 1][call]! });
    expect([...batch.advantages_T].filter((_, t) => batch.owned_T[t])).toEqual([0.75, 0.5, 0.5, 0, 0]);
  });

  it('refuses calls sampled under different masks', () => {
    const other = tree(
      [
        { kind: 0, parent: -1, tokens: [1] },
        { kind: 1, parent: 0, tokens: [2] },
      ],
      {
        0: { bannedIds: [7] },
      },
    );
    expect(() => packTrees([branching, other], [1, 1])).toThrow(/banned ids \[7\]/);
  });

  it('on any tree: each action token owned exactly once, each row a path', () => {
    const nodes = fc
      .array(
        fc.record({
          up: fc.nat(),
          kind: fc.constantFrom<(0 | 1)[]>(0, 1),
          size: fc.integer({ min: 1, max: 3 }),
        }),
        { minLength: 1, maxLength: 15 },
      )
      .map((drawn) => {
        let next = 0;
        return drawn.map(({ up, kind, size }, i): TestNode => ({
          kind,
          parent: i === 0 ? -1 : (up % (i + 1)) - 1,
          tokens: Array.from({ length: size }, () => next++),
        }));
      });
    fc.assert(
      fc.property(nodes, (drawn) => {
        const batch = packTrees([tree(drawn)], [1]);
        const owned = [...batch.tokens_T].filter((_, t) => batch.owned_T[t]);
        expect(owned.sort((a, b) => a - b)).toEqual(drawn.flatMap((node) => (node.kind ? node.tokens : [])));
        for (let row = 0; row + 1 < batch.rowStart_B1.length; row++) {
          const node = drawn.findIndex((n) => n.tokens.includes(batch.tokens_T[batch.rowStart_B1[row]!]!));
          const above = batch.parent_B![row]!;
          expect(above).toBeLessThan(row);
          const first = above < 0 ? undefined : batch.tokens_T[batch.rowStart_B1[above]!];
          expect(drawn[drawn[node]!.parent]?.tokens[0]).toBe(first);
        }
      }),
    );
  });
});

describe('batch files', () => {
  it('come back as they went, NaN included', () => {
    const path = join(mkdtempSync(join(tmpdir(), 'treeward-batch-')), 'b.safetensors');
    const batch = packTrees([branching], [0.5]);
    writeBatch(path, batch);
    expect(readBatch(path)).toEqual(batch);
  });
});
