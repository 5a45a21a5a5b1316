import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { causalGae, joinCausalOrders, type CausalGaeInput, type CausalGaeResult } from './index.js';
import { causalGaeReference } from './testing/causal-gae-reference.js';
import { implementations } from './testing/implementations.js';
import { sameBits } from './testing/same-bits.js';

/** A batch of random acyclic orders: any number of sinks, empty calls, rewards anywhere, positions in no order. */
const batches: fc.Arbitrary<CausalGaeInput> = fc
  .array(
    fc.array(
      fc.record({
        tokens: fc.nat({ max: 40 }),
        reward: fc.constantFrom(0, 0, 0, 1, -0.5),
        edges: fc.uniqueArray(fc.nat({ max: 20 }), { maxLength: 3 }),
        order: fc.nat({ max: 1000 }),
      }),
      { maxLength: 12 },
    ),
    { maxLength: 6 },
  )
  .map((rollouts) => {
    const orders = rollouts.map((calls) => {
      // Edges go up in (order, position), which is any order of the positions.
      const rank = calls.map((_, i) => i).sort((a, b) => calls[a]!.order - calls[b]!.order || a - b);
      const successors = calls.map((call, i) => {
        const later = rank.slice(rank.indexOf(i) + 1);
        return [...new Set(later.length === 0 ? [] : call.edges.map((e) => later[e % later.length]!))];
      });
      const offset_C1 = Int32Array.from([0, ...successors.map(({ length }) => length)]);
      for (let c = 1; c < offset_C1.length; c++) offset_C1[c]! += offset_C1[c - 1]!;
      return {
        offset_C1,
        successor_L: Int32Array.from(successors.flat()),
        weight_L: Float32Array.from(successors.flatMap((s) => s.map(() => 1 / s.length))),
      };
    });
    const calls = rollouts.flat();
    const tokenOffset_C1 = Int32Array.from([0, ...calls.map(({ tokens }) => tokens)]);
    for (let c = 1; c < tokenOffset_C1.length; c++) tokenOffset_C1[c]! += tokenOffset_C1[c - 1]!;
    return {
      ...joinCausalOrders(orders),
      values_T: Float32Array.from({ length: tokenOffset_C1.at(-1)! }, (_, t) => Math.sin(t * 12.9898)),
      tokenOffset_C1,
      reward_C: Float32Array.from(calls, ({ reward }) => reward),
    };
  });

function close(got: ArrayLike<number>, want: ArrayLike<number>, relative: number, absolute: number): void {
  expect(got.length).toBe(want.length);
  for (let i = 0; i < want.length; i++) {
    const error = Math.abs(got[i]! - want[i]!);
    if (!(error <= absolute + relative * Math.abs(want[i]!)))
      throw new Error(`[${i}]: got ${got[i]}, want ${want[i]}`);
  }
}

describe.each(implementations)('$name', ({ binding, backend, single }) => {
  const run = (input: CausalGaeInput, gamma: number, lambda: number): CausalGaeResult =>
    binding.causalGae(input, { gamma, lambda }, backend);

  test('equals the float64 recursion on random orders', () => {
    fc.assert(
      fc.property(
        batches,
        fc.constantFrom(0, 0.5, 0.9, 0.99, 1),
        fc.constantFrom(0, 0.5, 0.95, 1),
        (input, gamma, lambda) => {
          const [got, want] = [run(input, gamma, lambda), causalGaeReference(input, { gamma, lambda })];
          close(got.targets_T, want.targets_T, 1e-5, 1e-5);
          close(got.advantages_T, want.advantages_T, 1e-5, 1e-5);
        },
      ),
      { numRuns: single ? 60 : 400 },
    );
  });

  test('gamma = lambda = 1 gives exactly R − V on every token, whatever the order', () => {
    fc.assert(
      fc.property(batches, fc.constantFrom(1, -0.5, 3), (input, reward) => {
        const isSink = (c: number): boolean =>
          input.successorOffset_C1[c] === input.successorOffset_C1[c + 1];
        // Halves and thirds of weights: sums of thirds are 1 only up to rounding.
        const reward_C = input.reward_C.map((_, c) => (isSink(c) ? reward : 0));
        const { targets_T, advantages_T } = run({ ...input, reward_C }, 1, 1);
        close(targets_T, new Array<number>(targets_T.length).fill(reward), 1e-6, 0);
        advantages_T.forEach((a, t) => expect(a).toBe(Math.fround(targets_T[t]! - input.values_T[t]!)));
      }),
      { numRuns: single ? 30 : 200 },
    );
  });
});

describe('misuse is a typed error', () => {
  const good: CausalGaeInput = {
    values_T: Float32Array.of(0.1, 0.2, 0.3),
    callOffset_R1: Int32Array.of(0, 2),
    tokenOffset_C1: Int32Array.of(0, 1, 3),
    successorOffset_C1: Int32Array.of(0, 1, 1),
    successor_L: Int32Array.of(1),
    weight_L: Float32Array.of(1),
    reward_C: Float32Array.of(0, 1),
  };
  const cases: [string, string, RegExp, Partial<CausalGaeInput>][] = [
    [
      'cycle',
      'NATIVE_E_CYCLE',
      /successor_L/,
      {
        successorOffset_C1: Int32Array.of(0, 1, 2),
        successor_L: Int32Array.of(1, 0),
        weight_L: Float32Array.of(1, 1),
      },
    ],
    ['itself', 'NATIVE_E_CYCLE', /successor_L/, { successor_L: Int32Array.of(0) }],
    ['NaN weight', 'NATIVE_E_VALUE', /weight_L\[0\]/, { weight_L: Float32Array.of(NaN) }],
    ['negative weight', 'NATIVE_E_VALUE', /weight_L\[0\]/, { weight_L: Float32Array.of(-1) }],
    ['NaN value', 'NATIVE_E_VALUE', /values_T\[1\]/, { values_T: Float32Array.of(0, NaN, 0) }],
    ['infinite reward', 'NATIVE_E_VALUE', /reward_C\[1\]/, { reward_C: Float32Array.of(0, Infinity) }],
    ['successor outside', 'NATIVE_E_VALUE', /successor_L\[0\]/, { successor_L: Int32Array.of(2) }],
    ['negative successor', 'NATIVE_E_VALUE', /successor_L\[0\]/, { successor_L: Int32Array.of(-1) }],
    [
      'offsets that decrease',
      'NATIVE_E_VALUE',
      /tokenOffset_C1\[2\]/,
      { tokenOffset_C1: Int32Array.of(0, 3, 2) },
    ],
    [
      'offsets that end early',
      'NATIVE_E_VALUE',
      /tokenOffset_C1\[2\]/,
      { tokenOffset_C1: Int32Array.of(0, 1, 2) },
    ],
    [
      'offsets that start late',
      'NATIVE_E_VALUE',
      /callOffset_R1\[0\]/,
      { callOffset_R1: Int32Array.of(1, 2) },
    ],
    ['no offsets', 'NATIVE_E_LENGTH', /callOffset_R1/, { callOffset_R1: new Int32Array(0) }],
    ['calls', 'NATIVE_E_LENGTH', /tokenOffset_C1/, { tokenOffset_C1: Int32Array.of(0, 3) }],
    ['edges', 'NATIVE_E_LENGTH', /weight_L/, { weight_L: new Float32Array(2) }],
    [
      'type',
      'NATIVE_E_TYPE',
      /successor_L must be a Int32Array/,
      { successor_L: new Float32Array(1) as unknown as Int32Array },
    ],
  ];
  test.each(cases)('%s', (_name, code, message, changes) => {
    let thrown: unknown;
    try {
      causalGae({ ...good, ...changes }, { gamma: 1, lambda: 1 });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({
      name: 'NativeError',
      code,
      message: expect.stringMatching(message) as string,
    });
  });

  test('random arrays never crash: a result of the right length or a typed error', () => {
    const ints = fc.array(fc.integer({ min: -3, max: 9 }), { maxLength: 8 }).map((x) => Int32Array.from(x));
    const floats = fc.array(fc.float(), { maxLength: 8 }).map((x) => Float32Array.from(x));
    fc.assert(
      fc.property(
        fc.record({
          values_T: floats,
          callOffset_R1: ints,
          tokenOffset_C1: ints,
          successorOffset_C1: ints,
          successor_L: ints,
          weight_L: floats,
          reward_C: floats,
        }),
        fc.double(),
        (input, gamma) => {
          try {
            expect(causalGae(input, { gamma, lambda: 1 }).advantages_T).toHaveLength(input.values_T.length);
          } catch (error) {
            expect((error as { code: string }).code).toMatch(/^NATIVE_E_(LENGTH|VALUE|OPTION|CYCLE)$/);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });
});

test('long segments at any alignment, written past the caches, in pieces and into arrays of the caller', () => {
  // Calls of odd lengths, empty ones among them, large enough that whole cache lines are written by themselves.
  let state = 5;
  const below = (n: number): number =>
    Math.floor(((state = (state * 1103515245 + 12345) % 2147483648) / 2147483648) * n);
  const lengths = Array.from({ length: 2000 }, (_, c) => [0, below(7), below(60), below(3000)][c % 4]!);
  const tokenOffset_C1 = Int32Array.from([0, ...lengths]);
  for (let c = 1; c < tokenOffset_C1.length; c++) tokenOffset_C1[c]! += tokenOffset_C1[c - 1]!;
  const T = tokenOffset_C1.at(-1)!;
  expect(8 * T).toBeGreaterThan(4 << 20);
  const successors = lengths.map((_, c) =>
    c % 20 === 19 ? [] : [c + 1, c + 2].filter((s) => s % 20 > c % 20),
  );
  const successorOffset_C1 = Int32Array.from([0, ...successors.map(({ length }) => length)]);
  for (let c = 1; c <= lengths.length; c++) successorOffset_C1[c]! += successorOffset_C1[c - 1]!;
  const batch: CausalGaeInput = {
    values_T: Float32Array.from({ length: T }, (_, t) => Math.sin(t * 12.9898)),
    tokenOffset_C1,
    callOffset_R1: Int32Array.from({ length: 101 }, (_, r) => 20 * r),
    successorOffset_C1,
    successor_L: Int32Array.from(successors.flat()),
    weight_L: Float32Array.from(successors.flatMap((s) => s.map(() => 1 / s.length))),
    reward_C: Float32Array.from(lengths, (_, c) => (c % 20 === 19 ? 1 : c % 7 === 0 ? 0.5 : 0)),
  };
  const chosen = { gamma: 0.99, lambda: 0.95 };
  const want = causalGaeReference(batch, chosen);
  const fresh = causalGae(batch, chosen);
  const both = new Float32Array(2 * T + 2048);
  for (const [first, gap] of [
    [0, 1024 - (T % 1024)], // both at the same place of their pages
    [0, 0],
    [1, 15],
    [3, 6],
  ] as const) {
    const into = {
      advantages_T: both.subarray(first, first + T).fill(NaN),
      targets_T: both.subarray(first + T + gap, first + gap + 2 * T).fill(NaN),
    };
    expect(causalGae(batch, chosen, into).targets_T).toBe(into.targets_T);
    close(into.advantages_T, want.advantages_T, 1e-5, 1e-5);
    close(into.targets_T, want.targets_T, 1e-5, 1e-5);
    expect(sameBits(into.advantages_T, fresh.advantages_T)).toBe(true);
    expect(sameBits(into.targets_T, fresh.targets_T)).toBe(true);
  }
  const overlapping = { advantages_T: both.subarray(0, T), targets_T: both.subarray(T - 1, 2 * T - 1) };
  expect(() => causalGae(batch, chosen, overlapping)).toThrow(
    expect.objectContaining({ code: 'NATIVE_E_VALUE' }),
  );
  batch.values_T[T >> 1] = Infinity;
  expect(() => causalGae(batch, chosen)).toThrow(/values_T\[\d+\] must be finite/);
});

test('joinCausalOrders refuses an order that does not fit together', () => {
  const order = {
    offset_C1: Int32Array.of(0, 1),
    successor_L: Int32Array.of(0),
    weight_L: new Float32Array(0),
  };
  expect(() => joinCausalOrders([order])).toThrow(expect.objectContaining({ code: 'NATIVE_E_LENGTH' }));
});
