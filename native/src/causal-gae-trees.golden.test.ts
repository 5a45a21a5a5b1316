// Backups along prefix trees and along the causal chain (datasets/golden/tree_credit.json), through every implementation: the
// same operator, with the successors and weights each scheme names.
// Values are rounded to float32: rtol 1e-5, atol 2e-6.
import { describe, expect, test } from 'vitest';
import { joinCausalOrders, type CausalGaeInput } from './index.js';
import { allCases, goldenCases } from './testing/golden.js';
import { implementations } from './testing/implementations.js';

interface Node {
  id: string;
  parent: string | null;
  start_order: number;
  values: number[];
  leaf_reward: number | null;
}
interface Case {
  name: string;
  args: { scheme?: string; gamma: number; lam: number; outcome?: number };
  inputs: { nodes: Node[] } | string;
  outputs: { advantages: Record<string, number[]>; returns: Record<string, number[]> };
}
const cases = allCases<Case>('tree_credit.json');

const nodesOf = (name: string): Node[] => {
  const tree = name.split('/')[0]!;
  const { inputs } = cases.find((other) => other.name === `${tree}/weights`)!;
  return [...(inputs as { nodes: Node[] }).nodes].sort((a, b) => a.start_order - b.start_order);
};

function inputOf({ name, args }: Case): CausalGaeInput {
  const nodes = nodesOf(name);
  const children = nodes.map(({ id }) => nodes.flatMap(({ parent }, i) => (parent === id ? [i] : [])));
  const leaves = (n: number): number => children[n]!.reduce((sum, c) => sum + leaves(c), 0) || 1;
  const isChain = name.includes('/causal_chain/');
  const successors = nodes.map((_, n) => (isChain ? (n + 1 < nodes.length ? [n + 1] : []) : children[n]!));
  const weight = (n: number, c: number): number => {
    if (isChain || args.scheme === 'sum') return 1;
    return args.scheme === 'uniform' ? 1 / children[n]!.length : leaves(c) / leaves(n);
  };
  const offsets = (lengths: number[]): Int32Array =>
    lengths.reduce(
      (out, length, i) => ((out[i + 1] = out[i]! + length), out),
      new Int32Array(lengths.length + 1),
    );
  const order = {
    offset_C1: offsets(successors.map(({ length }) => length)),
    successor_L: Int32Array.from(successors.flat()),
    weight_L: Float32Array.from(successors.flatMap((to, n) => to.map((c) => weight(n, c)))),
  };
  return {
    ...joinCausalOrders([order]),
    values_T: Float32Array.from(nodes.flatMap(({ values }) => values)),
    tokenOffset_C1: offsets(nodes.map(({ values }) => values.length)),
    reward_C: Float32Array.from(nodes, ({ leaf_reward }, n) =>
      isChain ? (n === nodes.length - 1 ? args.outcome! : 0) : (leaf_reward ?? 0),
    ),
  };
}

describe.each(implementations)('$name', ({ binding, backend }) => {
  test.each(goldenCases<Case>('tree_credit.json'))('golden $name', (golden) => {
    const options = { gamma: golden.args.gamma, lambda: golden.args.lam };
    const { advantages_T, targets_T } = binding.causalGae(inputOf(golden), options, backend);
    const nodes = nodesOf(golden.name);
    for (const [got, want] of [
      [advantages_T, golden.outputs.advantages],
      [targets_T, golden.outputs.returns],
    ] as const) {
      const want_T = nodes.flatMap(({ id }) => want[id]!);
      expect(got).toHaveLength(want_T.length);
      want_T.forEach((w, t) => expect(Math.abs(got[t]! - w)).toBeLessThanOrEqual(1e-5 * Math.abs(w) + 2e-6));
    }
  });
});
