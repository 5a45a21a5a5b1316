import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cutForest, joinTrees, packTrees, type CutForestInput, type PackTreesInput } from './index.js';
import { codeOf } from './testing/close.js';
import { ancestors, cutForestReference, packTreesReference } from './testing/pack-trees-reference.js';

/** Rows over a small vocabulary, so that prefixes are often shared; with gaps between rows. */
const inputs: fc.Arbitrary<PackTreesInput> = fc
  .array(
    fc.record({
      up: fc.nat({ max: 30 }),
      tokens: fc.array(fc.nat({ max: 2 }), { maxLength: 6 }),
      gap: fc.constantFrom(0, 0, 1),
      weights: fc.array(fc.constantFrom(0, 0, 1, -0.5), { minLength: 6, maxLength: 6 }),
    }),
    { maxLength: 25 },
  )
  .map((rows) => {
    const [tokens, start, end, weights]: number[][] = [[], [], [], []];
    for (const row of rows) {
      for (let g = 0; g < row.gap; g++) {
        tokens!.push(7);
        weights!.push(0);
      }
      start!.push(tokens!.length);
      tokens!.push(...row.tokens);
      weights!.push(...row.weights.slice(0, row.tokens.length));
      end!.push(tokens!.length);
    }
    return {
      tokens_T: Int32Array.from(tokens!),
      start_B: Int32Array.from(start!),
      end_B: Int32Array.from(end!),
      parent_B: Int32Array.from(rows, ({ up }, b) => (up % (b + 1)) - 1),
      weight_T: Float32Array.from(weights!),
    };
  });

/** Everything with a weight and a predictor, as a trainer scores it. */
function scored(input: PackTreesInput): { forest: ReturnType<typeof packTrees>; cut: CutForestInput } {
  const forest = packTrees(input);
  const predictor = (t: number): number => forest.parent_F[forest.position_T[t]!]!;
  const tokens = [...input.tokens_T.keys()].filter((t) => input.weight_T![t] !== 0 && predictor(t) >= 0);
  return { forest, cut: { ...forest, predictor_M: Int32Array.from(tokens, predictor) } };
}

describe('packTrees', () => {
  test('every token once, in depth-first order, with its path, subtree, depth and weights', () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const { path_T, paths_F } = packTreesReference(input);
        const forest = packTrees(input);
        expect([...forest.position_T]).toEqual(
          path_T.map((path) => (path === null ? -1 : paths_F.indexOf(path))),
        );
        paths_F.forEach((path, f) => {
          const steps = path.split('/').slice(1).map(Number);
          expect(ancestors(forest.parent_F, f).map((a) => forest.tokens_F[a])).toEqual(steps);
          expect(forest.depth_F[f]).toBe(steps.length - 1);
          const below = paths_F.filter((other) => other === path || other.startsWith(`${path}/`)).length;
          expect(forest.end_F[f]).toBe(f + below);
          const given = path_T.flatMap((p, t) => (p === path ? [input.weight_T![t]!] : []));
          expect(forest.owned_F[f]).toBe(given.filter((weight) => weight !== 0).length);
          expect(forest.weight_F[f]).toBeCloseTo(given.reduce((sum, weight) => sum + weight, 0));
        });
        expect(packTrees(input)).toEqual(forest);
      }),
      { numRuns: 300 },
    );
  });

  test('what a token sees by its interval are its ancestors', () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const { parent_F, end_F } = packTrees(input);
        parent_F.forEach((_, f) => {
          const seen = [...end_F.keys()].filter((k) => k <= f && f < end_F[k]!);
          expect(seen).toEqual(ancestors(parent_F, f));
        });
      }),
    );
  });

  test('trees of one group share their prompt; their nodes are rows', () => {
    const tree = (reply: number[]): Parameters<typeof joinTrees>[0][number] => ({
      tokens_T: Int32Array.of(1, 2, 3, ...reply),
      nodes: {
        start_N: Int32Array.of(0, 3),
        end_N: Int32Array.of(3, 3 + reply.length),
        parent_N: Int32Array.of(-1, 0),
      },
    });
    const input = joinTrees([tree([4, 5]), tree([4, 6]), tree([7])]);
    expect([...input.nodeOffset_R1]).toEqual([0, 2, 4, 6]);
    expect([...input.tokenOffset_R1]).toEqual([0, 5, 10, 14]);
    const forest = packTrees(input);
    expect([...forest.tokens_F]).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect([...forest.end_F]).toEqual([7, 7, 7, 6, 5, 6, 7]);
    expect([...forest.depth_F]).toEqual([0, 1, 2, 3, 4, 4, 3]);
    expect([...forest.position_T]).toEqual([0, 1, 2, 3, 4, 0, 1, 2, 3, 5, 0, 1, 2, 6]);
  });

  test('many children of one token, large ids', () => {
    const replies = Array.from({ length: 5000 }, (_, i) => (i * 7919) % 4000);
    const tokens_T = Int32Array.of(2 ** 31 - 1, ...replies);
    const start_B = Int32Array.of(0, ...replies.map((_, i) => i + 1));
    const end_B = start_B.map((start) => start + 1);
    const parent_B = new Int32Array(replies.length + 1).fill(0);
    parent_B[0] = -1;
    const forest = packTrees({ tokens_T, start_B, end_B, parent_B });
    const distinct = [...new Set(replies)];
    expect([...forest.tokens_F]).toEqual([2 ** 31 - 1, ...distinct]);
    expect([...forest.position_T.subarray(1)]).toEqual(replies.map((token) => 1 + distinct.indexOf(token)));
  });
});

describe('cutForest', () => {
  const options = fc.record({
    tokenBudget: fc.integer({ min: 1, max: 30 }),
    oversize: fc.constantFrom('widen' as const, 'alone' as const),
  });

  test('every scored token once, with its whole path, within the budget', () => {
    fc.assert(
      fc.property(inputs, options, fc.boolean(), (input, chosen, grouped) => {
        const { forest, cut } = scored(input);
        const given = grouped ? { ...cut, group_M: cut.predictor_M.map((_, m) => (m * 5) % 3) } : cut;
        const got = cutForest(given, chosen);
        const want = cutForestReference(given, chosen);
        const U = got.scoredOffset_U1.length - 1;
        expect(U).toBe(want.length);
        expect([...got.order_M].sort((a, b) => a - b)).toEqual([...cut.predictor_M.keys()]);
        want.forEach(({ scored, tokens }, u) => {
          const [from, to] = [got.scoredOffset_U1[u]!, got.scoredOffset_U1[u + 1]!];
          const [first, last] = [got.tokenOffset_U1[u]!, got.tokenOffset_U1[u + 1]!];
          expect([...got.order_M.subarray(from, to)]).toEqual(scored);
          expect([...got.forest_N.subarray(first, last)]).toEqual(tokens);
          const parent_N = got.parent_N.subarray(first, last);
          const end_N = got.end_N.subarray(first, last);
          const path = (n: number): number[] => ancestors(parent_N, n).map((a) => tokens[a]!);
          scored.forEach((m, i) => {
            expect(path(got.predictor_M[from + i]!)).toEqual(ancestors(forest.parent_F, cut.predictor_M[m]!));
          });
          tokens.forEach((_, n) => {
            const seen = tokens.flatMap((token, k) => (k <= n && n < end_N[k]! ? [token] : []));
            expect(seen).toEqual(path(n));
          });
        });
        expect(cutForest(given, chosen)).toEqual(got);
      }),
      { numRuns: 300 },
    );
  });

  test('a path over the budget: wider batches, one of its own, or an error', () => {
    const forest = { parent_F: Int32Array.of(-1, 0, 1, -1, 3), end_F: Int32Array.of(3, 3, 3, 5, 5) };
    const input = { ...forest, predictor_M: Int32Array.of(4, 2, 0) };
    const sizes = (oversize: 'widen' | 'alone'): number[] => {
      const { tokenOffset_U1 } = cutForest(input, { tokenBudget: 2, oversize });
      return [...tokenOffset_U1.subarray(1)].map((end, u) => end - tokenOffset_U1[u]!);
    };
    expect(sizes('widen')).toEqual([3, 2]);
    expect(sizes('alone')).toEqual([3, 2]);
    expect(() => cutForest(input, { tokenBudget: 2, oversize: 'refuse' })).toThrow(
      expect.objectContaining({
        code: 'NATIVE_E_VALUE',
        message: expect.stringMatching(/predictor_M\[2\] needs more/) as string,
      }) as Error,
    );
    expect(cutForest(input, { tokenBudget: 5 }).tokenOffset_U1).toEqual(Int32Array.of(0, 5));
    expect(cutForest({ ...forest, predictor_M: new Int32Array(0) }, { tokenBudget: 1 }).order_M).toHaveLength(
      0,
    );
  });
});

describe('misuse is a typed error', () => {
  const input: PackTreesInput = {
    tokens_T: Int32Array.of(1, 2),
    start_B: Int32Array.of(0, 1),
    end_B: Int32Array.of(1, 2),
    parent_B: Int32Array.of(-1, 0),
  };
  const cases: [string, string, Partial<PackTreesInput>][] = [
    ['a parent behind its row', 'NATIVE_E_VALUE', { parent_B: Int32Array.of(0, 0) }],
    ['a parent below -1', 'NATIVE_E_VALUE', { parent_B: Int32Array.of(-2, 0) }],
    ['a row outside the tokens', 'NATIVE_E_VALUE', { end_B: Int32Array.of(1, 3) }],
    ['a row that ends before it starts', 'NATIVE_E_VALUE', { end_B: Int32Array.of(1, 0) }],
    ['a token in two rows', 'NATIVE_E_VALUE', { start_B: Int32Array.of(0, 0) }],
    ['a negative id', 'NATIVE_E_VALUE', { tokens_T: Int32Array.of(1, -2) }],
    ['a weight that is no number', 'NATIVE_E_VALUE', { weight_T: Float32Array.of(1, NaN) }],
    ['a length', 'NATIVE_E_LENGTH', { end_B: Int32Array.of(1) }],
    ['a type', 'NATIVE_E_TYPE', { tokens_T: Float32Array.of(1, 2) as never }],
  ];
  test.each(cases)('packTrees: %s', (_name, code, changes) => {
    expect(codeOf(() => packTrees({ ...input, ...changes }))).toBe(code);
  });

  test('cutForest, whatever it is given', () => {
    const small = fc
      .array(fc.integer({ min: -3, max: 6 }), { maxLength: 6 })
      .map((values) => Int32Array.from(values));
    fc.assert(
      fc.property(
        small,
        small,
        small,
        fc.constantFrom(0, 1, 3, NaN, 1e300),
        (parent_F, end_F, predictor_M, tokenBudget) => {
          const code = codeOf(() => cutForest({ parent_F, end_F, predictor_M }, { tokenBudget }));
          expect(code ?? 'NATIVE_E_').toMatch(/^NATIVE_E_(OPTION|LENGTH|VALUE)?$/);
          if (!(tokenBudget >= 1)) expect(code).toBe('NATIVE_E_OPTION');
        },
      ),
      { numRuns: 500 },
    );
  });
});
