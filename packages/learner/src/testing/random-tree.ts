import { randomStream } from '@treeward/base';
import type { PackedTrees } from '../types.js';

/**
 * Rollouts of a group as a random batch: a shared prompt, then nodes that continue, branch and repeat. Half of the nodes are
 * sampled, with advantages around 0.
 */
export function randomTree(
  seed: string | number,
  {
    rollouts,
    vocabulary,
    nodes = 12,
    size = 5,
    prompt: promptLength = 6,
  }: { rollouts: number; vocabulary: number; nodes?: number; size?: number; prompt?: number },
): PackedTrees {
  const random = randomStream(seed, 'random-tree');
  const rows: { parent: number; tokens: number[]; action: boolean; rollout: number }[] = [];
  const draw = (length: number): number[] => Array.from({ length }, () => random.below(vocabulary));
  const prompt = draw(promptLength);
  for (let rollout = 0; rollout < rollouts; rollout++) {
    const first = rows.length;
    rows.push({ parent: -1, tokens: prompt, action: false, rollout });
    for (let n = 0; n < nodes; n++) {
      const parent = random.next() < 0.6 ? rows.length - 1 : first + random.below(rows.length - first);
      rows.push({ parent, tokens: draw(1 + random.below(size)), action: random.next() < 0.6, rollout });
    }
  }
  const rowStart_B1 = new Int32Array(rows.length + 1);
  rows.forEach(({ tokens }, b) => (rowStart_B1[b + 1] = rowStart_B1[b]! + tokens.length));
  const each = <V>(value: (row: (typeof rows)[number]) => V): V[] =>
    rows.flatMap((row) => row.tokens.map(() => value(row)));
  return {
    rowStart_B1,
    parent_B: Int32Array.from(rows, ({ parent }) => parent),
    tokens_T: Int32Array.from(rows.flatMap(({ tokens }) => tokens)),
    owned_T: Uint8Array.from(each(({ action }) => (action ? 1 : 0))),
    rolloutLogprobs_T: Float32Array.from(each(({ action }) => (action ? -1 : NaN))),
    advantages_T: Float32Array.from(each(({ action }) => (action ? random.normal() : 0))),
    temperature_T: Float32Array.from(each(() => 1)),
    rollout_B: Int32Array.from(rows, ({ rollout }) => rollout),
    bannedIds: [],
    numRollouts: rollouts,
  };
}

/**
 * Every root-to-leaf path of a batch written out, each owned token belonging to the first path that has it.
 * `source_T`: per token of the written-out rows the packed token that it trains, −1 where it trains none.
 */
export function separatePaths(batch: PackedTrees): {
  rows: { tokens: number[]; from: number }[];
  source_T: number[];
} {
  const B = batch.rowStart_B1.length - 1;
  const parent = (row: number): number => batch.parent_B?.[row] ?? -1;
  const inner = new Set(Array.from({ length: B }, (_, row) => parent(row)));
  const taken = new Set<number>();
  const rows: { tokens: number[]; from: number }[] = [];
  const source_T: number[] = [];
  for (let leaf = 0; leaf < B; leaf++) {
    if (inner.has(leaf)) continue;
    const path: number[] = [];
    for (let row = leaf; row >= 0; row = parent(row)) path.unshift(row);
    const tokens: number[] = [];
    const from = source_T.length;
    for (const row of path) {
      for (let t = batch.rowStart_B1[row]!; t < batch.rowStart_B1[row + 1]!; t++) {
        const trains = batch.owned_T[t] === 1 && !taken.has(t) && tokens.length > 0;
        if (trains) taken.add(t);
        tokens.push(batch.tokens_T[t]!);
        source_T.push(trains ? t : -1);
      }
    }
    rows.push({ tokens, from });
  }
  return { rows, source_T };
}
