import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { causalAdvantages } from './causal-advantages.js';
import { causalOrders, type OrderedEdge } from './causal-order.js';
import { causalSequence } from './causal-sequence.js';
import type { CausalOrder } from './types.js';

const orderOf = (successors: readonly (readonly number[])[]): CausalOrder => {
  const offset_C1 = Int32Array.from([
    0,
    ...successors.map((_, i) => successors.slice(0, i + 1).flat().length),
  ]);
  return {
    offset_C1,
    successor_L: Int32Array.from(successors.flat()),
    weight_L: Float32Array.from(successors.flatMap((list) => list.map(() => 1 / list.length))),
  };
};
const credit = (
  order: CausalOrder,
  values: readonly (readonly number[])[],
  settings: { reward: number; gamma: number; lambda: number },
): number[][] => {
  const tokenOffset_C1 = Int32Array.from([0, ...values.map((_, i) => values.slice(0, i + 1).flat().length)]);
  const { advantages_T } = causalAdvantages(order, {
    tokenOffset_C1,
    values_T: Float64Array.from(values.flat()),
    ...settings,
  });
  return values.map((_, c) => [...advantages_T.subarray(tokenOffset_C1[c], tokenOffset_C1[c + 1])]);
};
/** A random DAG over calls, some of them without tokens; sinks are where nothing follows. */
const dag = fc
  .array(
    fc.record({
      values: fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { maxLength: 4 }),
      seed: fc.nat(),
    }),
    {
      minLength: 1,
      maxLength: 12,
    },
  )
  .map((calls) => ({
    values: calls.map(({ values }) => values),
    order: orderOf(
      calls.map(({ seed }, c) =>
        calls.flatMap((_, later) => (later > c && (seed >> (later % 20)) % 2 === 1 ? [later] : [])),
      ),
    ),
  }));

describe('causalAdvantages', () => {
  it('10: gamma = lambda = 1 gives reward minus value on every token of every DAG', () => {
    fc.assert(
      fc.property(dag, fc.double({ min: -3, max: 3, noNaN: true }), ({ values, order }, reward) => {
        const advantages = credit(order, values, { reward, gamma: 1, lambda: 1 });
        values.forEach((list, c) =>
          list.forEach((value, t) => expect(advantages[c]![t]).toBeCloseTo(reward - value, 5)),
        );
      }),
    );
  });

  it('is ordinary GAE on a chain (golden case chain/causal_chain)', () => {
    const values = [
      [0.2, 0.3, 0.1],
      [0.5, 0.4],
      [0.6, 0.9, 0.8],
    ];
    const chain = orderOf([[1], [2], []]);
    const flat = values.flat();
    for (const [gamma, lambda] of [
      [1, 1],
      [1, 0.95],
      [0.9, 0.5],
      [1, 0],
    ] as const) {
      const expected: number[] = [];
      let next = 0;
      for (let t = flat.length - 1; t >= 0; t--) {
        const last = t === flat.length - 1;
        next = (last ? 1 : gamma * flat[t + 1]!) - flat[t]! + gamma * lambda * (last ? 0 : next);
        expected.unshift(next);
      }
      const got = credit(chain, values, { reward: 1, gamma, lambda }).flat();
      got.forEach((advantage, t) => expect(advantage).toBeCloseTo(expected[t]!, 12));
    }
  });

  it('takes the mean over agents that one call started, and hands on what a call without tokens sees', () => {
    // 0 -> {1, 2} -> 3 (no token) -> sink.
    const order = orderOf([[1, 2], [3], [3], []]);
    const got = credit(order, [[0.5], [0.2], [0.8], []], { reward: 1, gamma: 1, lambda: 0 });
    expect(got).toEqual([[0.5 * 0.2 + 0.5 * 0.8 - 0.5], [1 - 0.2], [expect.closeTo(1 - 0.8, 12)], []]);
  });

  it('refuses an order that goes backwards', () => {
    const order = { ...orderOf([[1], []]), successor_L: Int32Array.of(0) };
    expect(() => credit(order, [[0], [0]], { reward: 1, gamma: 1, lambda: 1 })).toThrow(RangeError);
  });
});

describe('causalOrders', () => {
  const calls = (...roles: ('main' | 'subagent' | 'side')[]) => roles.map((role, call) => ({ call, role }));
  const edge = (from: number, type: OrderedEdge['type'], to: number, confidence = 1): OrderedEdge => ({
    from,
    to,
    type,
    confidence,
  });
  const links = ({ offset_C1, successor_L }: CausalOrder): number[][] =>
    [...offset_C1.slice(1)].map((end, i) => [...successor_L.subarray(offset_C1[i], end)]);

  it('leaves side calls out of the chain', () => {
    expect(links(causalOrders(calls('main', 'side', 'main'), []).chain)).toEqual([[2], [], []]);
  });

  it('follows causes and no siblings; what nothing follows is a sink', () => {
    const edges = [edge(0, 'retry', 1), edge(1, 'continue', 2), edge(1, 'rollback', 3)];
    // The rollback came later than the continue of the same call, so it may depend on what came of it.
    expect(links(causalOrders(calls('main', 'main', 'main', 'main'), edges).lineage)).toEqual([
      [1],
      [2],
      [],
      [],
    ]);
  });

  it('settles agents of one reply, and the parent that went on beside one in the background', () => {
    const four = calls('main', 'subagent', 'subagent', 'main');
    const agents = [edge(0, 'spawn', 1), edge(0, 'spawn', 2), edge(0, 'continue', 3)];
    expect(links(causalOrders(four, agents).lineage)[0]).toEqual([1, 2, 3]);
    const joined = [...agents, edge(1, 'return', 3), edge(2, 'return', 3)];
    expect(links(causalOrders(four, joined).lineage)).toEqual([[1, 2], [3], [3], []]);
  });

  it('makes a call with an ambiguous or doubtful edge a sink', () => {
    const three = calls('main', 'main', 'main');
    const edges = [edge(0, 'ambiguous', 1), edge(0, 'continue', 2)];
    expect(links(causalOrders(three, edges).lineage)[0]).toEqual([]);
    expect(links(causalOrders(three, [edge(0, 'continue', 2, 0.3)]).lineage)[0]).toEqual([]);
    expect(links(causalOrders(three, [edge(0, 'continue', 2, 0.9)]).lineage)[0]).toEqual([2]);
  });
});

describe('causalSequence', () => {
  const link = (from: number, to: number) => ({
    from,
    to,
    type: 'continue' as const,
    confidence: 1,
    evidence: [],
  });
  const arrived = [{ call: 0 }, { call: 1 }, { call: 2 }];

  it('puts a cause before its effect, and keeps arrivals otherwise', () => {
    expect(causalSequence(arrived, [link(0, 2)]).order.map(({ call }) => call)).toEqual([0, 1, 2]);
    expect(causalSequence(arrived, [link(2, 0)]).order.map(({ call }) => call)).toEqual([1, 2, 0]);
  });

  it('names the calls of a cycle and loses none', () => {
    const { order, cyclic } = causalSequence(arrived, [link(0, 1), link(1, 0)]);
    expect(order.map(({ call }) => call)).toEqual([2, 0, 1]);
    expect(cyclic).toEqual([0, 1]);
  });
});
