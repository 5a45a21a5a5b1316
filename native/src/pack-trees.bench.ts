// A batch of rollouts that share their prompt, each a tree of turns, beside the plain version in TypeScript (a map from
// (token before, token) to token, as packages/learner had it).
import { cutForest, packTrees, type PackTreesInput } from '@treeward/native';
import { assertClose, noise, row, time, type OperatorBench } from './harness.bench.js';

/** `rollouts` of one group: a shared prompt, then `turns` rows of `length` tokens, every fourth of which is retried. */
function group(rollouts: number, prompt: number, turns: number, length: number): PackTreesInput {
  const uniform = noise();
  const tokens: number[] = [];
  const [start, end, parent]: number[][] = [[], [], []];
  const add = (size: number, above: number, draw: (i: number) => number): number => {
    start!.push(tokens.length);
    for (let i = 0; i < size; i++) tokens.push(draw(i));
    end!.push(tokens.length);
    parent!.push(above);
    return parent!.length - 1;
  };
  for (let r = 0; r < rollouts; r++) {
    let at = add(prompt, -1, (i) => (i * 7919) % 30000);
    for (let t = 0; t < turns; t++) {
      if (t % 4 === 3) add(length, at, () => Math.floor(uniform() * 30000));
      at = add(length, at, () => Math.floor(uniform() * 30000));
    }
  }
  return {
    tokens_T: Int32Array.from(tokens),
    start_B: Int32Array.from(start!),
    end_B: Int32Array.from(end!),
    parent_B: Int32Array.from(parent!),
  };
}

/** Parents of the distinct tokens in order of appearance. */
function plain({ tokens_T, start_B, end_B, parent_B }: PackTreesInput): number[] {
  const known = new Map<number, number>();
  const parents: number[] = [];
  const last: number[] = [];
  for (let b = 0; b < parent_B.length; b++) {
    let at = parent_B[b]! < 0 ? -1 : last[parent_B[b]!]!;
    for (let t = start_B[b]!; t < end_B[b]!; t++) {
      const key = (at + 1) * 2 ** 20 + tokens_T[t]!;
      let next = known.get(key);
      if (next === undefined) {
        next = parents.length;
        known.set(key, next);
        parents.push(at);
      }
      at = next;
    }
    last.push(at);
  }
  return parents;
}

export const packTreesBench: OperatorBench = async ({ quick }) => {
  const rows = [];
  for (const rollouts of quick ? [8] : [8, 64]) {
    const input = group(rollouts, 3000, 12, 200);
    const T = input.tokens_T.length;
    const forest = packTrees(input);
    assertClose([forest.tokens_F.length], [plain(input).length], 0, 'pack_trees');
    const predictor_M = forest.position_T.map((f) => forest.parent_F[f]!).filter((f) => f >= 0);
    const cut = (): unknown => cutForest({ ...forest, predictor_M }, { tokenBudget: 8192 });
    const t = await time({ pack: () => packTrees(input), cut, plain: () => plain(input) }, quick);
    const config = { rollouts, T, F: forest.tokens_F.length };
    const versus = { against: 'a map of tokens in TypeScript (trie only)', p50: t['plain']!.p50 };
    rows.push(row(`pack_trees/T=${T}/vs_map`, t['pack']!, config, versus));
    rows.push(row(`pack_trees/T=${T}/cut`, t['cut']!, config));
  }
  return rows;
};
