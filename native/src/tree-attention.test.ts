import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { treeAttention, treeAttentionBackward, type TreeAttentionInput } from './index.js';
import { candidatePaths } from './load-binding.js';
import { bfloat16 } from './testing/close.js';
import { implementations } from './testing/implementations.js';
import { isVisible, treeAttentionReference } from './testing/tree-attention-reference.js';

function close(got: ArrayLike<number>, want: ArrayLike<number>, absolute: number, what: string): void {
  expect(got.length).toBe(want.length);
  for (let i = 0; i < want.length; i++) {
    const error = Math.abs(got[i]! - want[i]!);
    if (!(error <= absolute + 1e-5 * Math.abs(want[i]!)))
      throw new Error(`${what}[${i}]: got ${got[i]}, want ${want[i]}`);
  }
}

interface Packed extends Pick<
  TreeAttentionInput,
  'position_Q' | 'end_K' | 'start_Q' | 'finish_K' | 'firstKey_Q' | 'lastKey_Q'
> {
  /** The node of each key and each node's parent, to say visibility without intervals. */
  node_K: number[];
  parent_N: number[];
}

/** Trees packed in depth-first order: each node hangs below one of the nodes on the path to the node before it. */
const forests: fc.Arbitrary<Packed> = fc
  .array(
    fc.record({
      length: fc.integer({ min: 1, max: 40 }),
      up: fc.nat({ max: 4 }),
      root: fc.constantFrom(false, false, false, true),
      lag: fc.nat({ max: 6 }),
    }),
    {
      minLength: 1,
      maxLength: 9,
    },
  )
  .map((nodes) => {
    const parent_N: number[] = [];
    const tree_N: number[] = [];
    nodes.forEach(({ up, root }, n) => {
      let parent = n - 1;
      for (let i = 0; i < up && parent >= 0 && parent_N[parent]! >= 0; i++) parent = parent_N[parent]!;
      parent_N.push(n === 0 || root ? -1 : parent);
      tree_N.push(parent_N[n]! < 0 ? n : tree_N[parent_N[n]!]!);
    });
    const node_K = nodes.flatMap(({ length }, n) => Array<number>(length).fill(n));
    const isBelow = (n: number, ancestor: number): boolean =>
      n === ancestor || (n >= 0 && isBelow(parent_N[n]!, ancestor));
    const end_K = Int32Array.from(node_K, (n) => node_K.findLastIndex((m) => isBelow(m, n)) + 1);
    const at = node_K.map((n, k) => ({ n, position: k }));
    const first = at
      .filter(({ n }, k) => k === 0 || node_K[k - 1] !== n)
      .map(({ n }) => ({ n, position: node_K.findLastIndex((m) => m === parent_N[n]) }));
    const queries = [...at, ...first];
    return {
      node_K,
      parent_N,
      position_Q: Int32Array.from(queries, ({ position }) => position),
      end_K,
      start_Q: Int32Array.from(queries, ({ n }) => 2 * n),
      finish_K: Int32Array.from(node_K, (n) =>
        nodes[n]!.lag === 6 ? 2 ** 31 - 1 : 2 * n + 1 + nodes[n]!.lag,
      ),
      firstKey_Q: Int32Array.from(queries, ({ n }) => node_K.findIndex((m) => tree_N[m] === tree_N[n])),
      lastKey_Q: Int32Array.from(
        queries,
        ({ n }) => node_K.findLastIndex((m) => tree_N[m] === tree_N[n]) + 1,
      ),
    };
  });

const ancestorsOnly = ({
  start_Q: _s,
  finish_K: _f,
  firstKey_Q: _a,
  lastKey_Q: _b,
  ...rest
}: Packed): Packed => rest;

function operands(
  packed: Packed,
  heads: number,
  keyHeads: number,
  dim: number,
): TreeAttentionInput & { gradOutput_QHD: Float32Array } {
  let state = 3;
  const next = (): number => (state = (state * 1103515245 + 12345) % 2147483648) / 1073741824 - 1;
  const floats = (n: number): Float32Array => Float32Array.from({ length: n }, next);
  const { node_K: _n, parent_N: _p, ...visibility } = packed;
  const [Q, K] = [packed.position_Q.length, packed.end_K.length];
  return {
    ...visibility,
    query_QHD: floats(Q * heads * dim),
    key_KJD: floats(K * keyHeads * dim),
    value_KJD: floats(K * keyHeads * dim),
    gradOutput_QHD: floats(Q * heads * dim),
  };
}

test('intervals say what the tree says: a token sees its node up to itself and its ancestors', () => {
  fc.assert(
    fc.property(forests, (packed) => {
      const input = operands(ancestorsOnly(packed), 1, 1, 1);
      const { node_K, parent_N } = packed;
      node_K.forEach((n, q) => {
        const seen = new Set<number>();
        for (let m = n; m >= 0; m = parent_N[m]!) seen.add(m);
        const wrong = node_K.findIndex((m, k) => isVisible(input, q, k) !== (seen.has(m) && k <= q));
        expect(wrong).toBe(-1);
      });
    }),
    { numRuns: 60 },
  );
});

describe.each(implementations)('$name', ({ binding, backend, single }) => {
  test.each([
    ['ancestors', ancestorsOnly],
    ['happens-before', (packed: Packed): Packed => packed],
  ])('%s: output and gradients equal the float64 reference', (_name, pick) => {
    fc.assert(
      fc.property(
        forests,
        fc.constantFrom([1, 1], [2, 1], [4, 2]),
        fc.constantFrom(32, 64),
        (packed, [heads, keyHeads], dim) => {
          const input = operands(pick(packed), heads!, keyHeads!, dim);
          const options = { heads: heads!, keyHeads: keyHeads!, dim };
          const forward = binding.treeAttention(input, options, backend);
          const got = {
            ...forward,
            ...binding.treeAttentionBackward({ ...input, ...forward }, options, backend),
          };
          const want = treeAttentionReference(input, options, input.gradOutput_QHD);
          close(got.output_QHD, want.output_QHD, 5e-6, 'output');
          close(got.gradQuery_QHD, want.gradQuery_QHD, 1e-5, 'gradQuery');
          close(got.gradKey_KJD, want.gradKey_KJD, 3e-5, 'gradKey');
          close(got.gradValue_KJD, want.gradValue_KJD, 3e-5, 'gradValue');
          expect(binding.treeAttention(input, options, backend)).toEqual(forward);
        },
      ),
      { numRuns: single ? 5 : 40 },
    );
  });

  test('a query that sees nothing gives 0 and passes no gradient', () => {
    const input = {
      query_QHD: new Float32Array(64).fill(1),
      key_KJD: new Float32Array(32).fill(1),
      value_KJD: new Float32Array(32).fill(2),
      position_Q: Int32Array.of(-1, 0),
      end_K: Int32Array.of(1),
    };
    const options = { heads: 1, keyHeads: 1, dim: 32 };
    const forward = binding.treeAttention(input, options, backend);
    expect([...forward.output_QHD]).toEqual([...Array<number>(32).fill(0), ...Array<number>(32).fill(2)]);
    expect(forward.lse_QH[0]).toBe(-Infinity);
    const gradients = binding.treeAttentionBackward(
      { ...input, ...forward, gradOutput_QHD: new Float32Array(64).fill(1) },
      options,
      backend,
    );
    expect([...gradients.gradValue_KJD]).toEqual(Array<number>(32).fill(1));
    expect(gradients.gradQuery_QHD.every((g) => Math.abs(g) < 1e-6)).toBe(true);
  });
});

test.each(implementations)('bfloat16 operands: $name', ({ binding, backend }) => {
  fc.assert(
    fc.property(forests, (packed) => {
      const full = operands(packed, 2, 1, 32);
      const options = { heads: 2, keyHeads: 1, dim: 32 };
      const halves = [full.query_QHD, full.key_KJD, full.value_KJD].map((x) => bfloat16(x as Float32Array));
      const with3 = <T>([query_QHD, key_KJD, value_KJD]: T[]): Record<
        'query_QHD' | 'key_KJD' | 'value_KJD',
        T
      > => ({
        query_QHD: query_QHD!,
        key_KJD: key_KJD!,
        value_KJD: value_KJD!,
      });
      const input = { ...full, ...with3(halves.map(({ bits }) => bits)) };
      const forward = binding.treeAttention(input, options, backend);
      const got = binding.treeAttentionBackward({ ...input, ...forward }, options, backend);
      const want = treeAttentionReference(
        { ...full, ...with3(halves.map(({ values }) => values)) },
        options,
        full.gradOutput_QHD,
      );
      // On CUDA the softmax and its gradient are rounded to bfloat16 between products.
      const absolute = backend === 'cpu' ? 3e-5 : 0.08;
      close(forward.output_QHD, want.output_QHD, absolute, 'output');
      close(got.gradQuery_QHD, want.gradQuery_QHD, absolute, 'gradQuery');
      close(got.gradKey_KJD, want.gradKey_KJD, absolute, 'gradKey');
    }),
    { numRuns: 6 },
  );
});

test('two threads: the same results, and equal bits in every run', () => {
  const script = `
    const binding = require(process.argv[1]), T = 700;
    const floats = (n, s) => Float32Array.from({ length: n }, (_, i) => Math.sin(s + i * 12.9898));
    const options = { heads: 4, keyHeads: 2, dim: 32 };
    const input = {
      query_QHD: floats(T * 128, 1), key_KJD: floats(T * 64, 2), value_KJD: floats(T * 64, 3),
      position_Q: Int32Array.from({ length: T }, (_, t) => t),
      end_K: Int32Array.from({ length: T }, (_, k) => (k < 300 ? T : 300 + (Math.floor((k - 300) / 100) + 1) * 100)),
    };
    const run = () => {
      const forward = binding.treeAttention(input, options);
      const back = binding.treeAttentionBackward({ ...input, ...forward, gradOutput_QHD: input.query_QHD }, options);
      return [forward.output_QHD, back.gradQuery_QHD, back.gradKey_KJD, back.gradValue_KJD].flatMap((x) => [...x]);
    };
    const first = run();
    if (run().some((x, i) => !Object.is(x, first[i]))) throw new Error('bits differ between runs');
    process.stdout.write(JSON.stringify(first));`;
  const path = candidatePaths().find((candidate) => existsSync(candidate))!;
  const [one, two] = ['1', '2'].map((threads) => {
    const env = { ...process.env, TREEWARD_NATIVE_THREADS: threads };
    const output = execFileSync(process.execPath, ['-e', script, path], {
      env,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
    return JSON.parse(output) as number[];
  });
  close(two!, one!, 1e-5, 'two threads');
});

test('any head size on the CPU', () => {
  fc.assert(
    fc.property(forests, fc.constantFrom(1, 5, 48), (packed, dim) => {
      const input = operands(packed, 2, 2, dim);
      const options = { heads: 2, keyHeads: 2, dim, scale: 0.3 };
      const got = treeAttention(input, options);
      const want = treeAttentionReference(input, options, input.gradOutput_QHD);
      close(got.output_QHD, want.output_QHD, 5e-6, 'output');
      close(
        treeAttentionBackward({ ...input, ...got }, options).gradKey_KJD,
        want.gradKey_KJD,
        3e-5,
        'gradKey',
      );
    }),
    { numRuns: 20 },
  );
});

describe('misuse is a typed error', () => {
  const good: TreeAttentionInput = {
    query_QHD: new Float32Array(8),
    key_KJD: new Float32Array(4),
    value_KJD: new Float32Array(4),
    position_Q: Int32Array.of(0, 1),
    end_K: Int32Array.of(2, 2),
  };
  const options = { heads: 2, keyHeads: 1, dim: 2 };
  const cases: [string, string, RegExp, Partial<TreeAttentionInput>, object?][] = [
    ['position', 'NATIVE_E_VALUE', /position_Q\[1\]/, { position_Q: Int32Array.of(0, 2) }],
    ['subtree before its key', 'NATIVE_E_VALUE', /end_K\[1\]/, { end_K: Int32Array.of(2, 1) }],
    ['subtree beyond the keys', 'NATIVE_E_VALUE', /end_K\[0\]/, { end_K: Int32Array.of(3, 2) }],
    ['half a history', 'NATIVE_E_OPTION', /start_Q/, { start_Q: Int32Array.of(0, 0) }],
    ['query length', 'NATIVE_E_LENGTH', /query_QHD/, { query_QHD: new Float32Array(7) }],
    ['mixed types', 'NATIVE_E_TYPE', /key_KJD/, { key_KJD: new Uint16Array(4) }],
    [
      'heads',
      'NATIVE_E_OPTION',
      /keyHeads/,
      { key_KJD: new Float32Array(12), value_KJD: new Float32Array(12) },
      { keyHeads: 3 },
    ],
    ['scale', 'NATIVE_E_OPTION', /scale/, {}, { scale: NaN }],
    ['dim', 'NATIVE_E_OPTION', /dim/, {}, { dim: 0 }],
  ];
  test.each(cases)('%s', (_name, code, message, changes, more = {}) => {
    let thrown: unknown;
    try {
      treeAttention({ ...good, ...changes }, { ...options, ...more });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({
      name: 'NativeError',
      code,
      message: expect.stringMatching(message) as string,
    });
  });
});
