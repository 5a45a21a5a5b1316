import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CausalOrder, RolloutTree, TreeCall } from '@treeward/tree-recovery';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readBatch, writeBatch } from './batch-file.js';
import { packTrees } from './pack.js';

interface Node {
  kind: 0 | 1;
  parent: number;
  tokens: number[];
}

const noOrder = (calls: number): CausalOrder => ({
  offset_C1: new Int32Array(calls + 1),
  successor_L: new Int32Array(0),
  weight_L: new Float32Array(0),
});

function tree(nodes: readonly Node[], calls: Record<number, Partial<TreeCall>> = {}): RolloutTree {
  const ends = nodes.reduce<number[]>(
    (all, node) => [...all, (all[all.length - 1] ?? 0) + node.tokens.length],
    [],
  );
  const actions = nodes.flatMap((node, i) => (node.kind === 1 ? [i] : []));
  return {
    rolloutId: 'r',
    labels: {},
    tokens_T: Int32Array.from(nodes.flatMap((node) => node.tokens)),
    logprobs_T: Float32Array.from(
      nodes.flatMap((node) => node.tokens.map((t) => (node.kind ? -t / 100 : NaN))),
    ),
    nodes: {
      kind_N: Uint8Array.from(nodes, (node) => node.kind),
      parent_N: Int32Array.from(nodes, (node) => node.parent),
      start_N: Int32Array.from(nodes, (node, i) => ends[i]! - node.tokens.length),
      end_N: Int32Array.from(ends),
      depth_N: new Int32Array(nodes.length),
    },
    calls: actions.map((actionNode, call) => ({
      call,
      promptNode: nodes[actionNode]!.parent,
      actionNode,
      role: 'main',
      agent: 0,
      epoch: 0,
      delivery: 'complete',
      policyVersion: 0,
      policyId: 'p',
      temperature: 0.8,
      bannedIds: [0, 1],
      startTime: 0,
      finishTime: 1,
      malformed: false,
      untrained: null,
      ...calls[call],
    })),
    edges: [],
    runs: [],
    epochs: [],
    causal: { chain: noOrder(actions.length), lineage: noOrder(actions.length) },
    issues: [],
    verdict: { kind: 'trainable', reason: null },
    reward: 1,
    status: 'completed',
  };
}

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
  it('makes a row per sampled leaf and owns every sampled token once', () => {
    const batch = packTrees([branching], [0.5]);
    expect([...batch.rowStart_B1]).toEqual([0, 3, 10]);
    expect([...batch.tokens_T]).toEqual([10, 11, 20, 10, 11, 21, 22, 30, 40, 41]);
    expect([...batch.owned_T]).toEqual([0, 0, 1, 0, 0, 1, 1, 0, 1, 1]);
    expect([...batch.advantages_T]).toEqual([0, 0, 0.5, 0, 0, 0.5, 0.5, 0, 0.5, 0.5]);
    expect(batch.bannedIds).toEqual([0, 1]);
    expect(batch.temperature_T[2]).toBeCloseTo(0.8);
    expect(batch.rolloutLogprobs_T[0]).toBeNaN();
    expect(batch.rolloutLogprobs_T[9]).toBeCloseTo(-0.41);
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
    expect([...batch.rollout_B]).toEqual([2]);
    expect([...batch.owned_T]).toEqual([0, 0]);
    expect(batch.numRollouts).toBe(3);
  });

  it('adds what one call earns or costs', () => {
    const batch = packTrees([branching], [1], { callAdvantage: (_, call) => (call === 0 ? -0.25 : 0) });
    expect([...batch.advantages_T].filter((_, t) => batch.owned_T[t])).toEqual([0.75, 1, 1, 1, 1]);
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
        return drawn.map(({ up, kind, size }, i): Node => ({
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
          const tokens = [...batch.tokens_T.slice(batch.rowStart_B1[row], batch.rowStart_B1[row + 1])];
          const nodesOfRow = [
            ...new Set(tokens.map((token) => drawn.findIndex((n) => n.tokens.includes(token)))),
          ];
          nodesOfRow.forEach((node, k) => expect(drawn[node]!.parent).toBe(k ? nodesOfRow[k - 1] : -1));
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
