import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { rope, ropeBackward, ropeTables } from './index.js';
import { bfloat16, close, codeOf } from './testing/close.js';
import { implementations } from './testing/implementations.js';
import { ropeReference } from './testing/rope-reference.js';

const cases = fc.record({
  positions: fc.array(fc.nat({ max: 20 }), { maxLength: 30 }),
  heads: fc.integer({ min: 1, max: 3 }),
  frequencies: fc.integer({ min: 1, max: 20 }),
  passing: fc.nat({ max: 5 }),
  pairs: fc.constantFrom('half' as const, 'interleaved' as const),
  seed: fc.nat(),
});

/** Frequencies of a model with theta 10,000. */
const frequencies = (F: number): number[] => Array.from({ length: F }, (_, f) => 10000 ** (-f / F));

describe.each(implementations)('$name', ({ binding, backend, single }) => {
  test('equals the float64 reference and turns back', () => {
    fc.assert(
      fc.property(cases, ({ positions, heads, frequencies: F, passing, pairs, seed }) => {
        const dim = 2 * F + passing;
        const options = { heads, dim, frequencies: F, pairs };
        const x_THD = Float32Array.from({ length: positions.length * heads * dim }, (_, i) =>
          Math.sin(i * 7 + seed),
        );
        const input = { x_THD, position_T: Int32Array.from(positions), ...ropeTables(21, frequencies(F)) };
        const got = binding.rope(input, options, backend);
        close(got, ropeReference(input, options), 1e-6, 1e-6, 'y');
        const back = { ...input, x_THD: got };
        const turned = binding.rope(back, { ...options, direction: 'inverse' }, backend);
        close(turned, ropeReference(back, options, true), 1e-6, 1e-6, 'gradient');
        close(turned, x_THD, 1e-6, 1e-6, 'there and back');
      }),
      { numRuns: single ? 30 : 200 },
    );
  });

  test('bfloat16 operands are what they stand for', () => {
    const { bits, values } = bfloat16(Float32Array.from({ length: 16 }, (_, i) => Math.sin(i)));
    const rest = { position_T: Int32Array.of(3, 1), ...ropeTables(4, frequencies(4)) };
    const options = { heads: 1, dim: 8, frequencies: 4 };
    const want = ropeReference({ x_THD: values, ...rest }, options);
    close(binding.rope({ x_THD: bits, ...rest }, options, backend), want, 1e-6, 1e-6, 'y');
  });
});

test("the default is transformers' rotate_half: x cos + [−x₂, x₁] sin", () => {
  const x = Float32Array.of(1, 2, 3, 4);
  const tables = ropeTables(6, [1, 0.1], 1.5);
  const y = rope({ x_THD: x, position_T: Int32Array.of(5), ...tables }, { heads: 1, dim: 4, frequencies: 2 });
  const [a, b] = [5, 0.5];
  const want = [
    1 * Math.cos(a) - 3 * Math.sin(a),
    2 * Math.cos(b) - 4 * Math.sin(b),
    3 * Math.cos(a) + 1 * Math.sin(a),
    4 * Math.cos(b) + 2 * Math.sin(b),
  ].map((value) => 1.5 * value);
  close(y, want, 1e-6, 1e-6, 'y');
});

test('misuse is a typed error', () => {
  const input = { x_THD: new Float32Array(8), position_T: Int32Array.of(0, 1), ...ropeTables(2, [1, 1]) };
  const options = { heads: 1, dim: 4, frequencies: 2 };
  expect(codeOf(() => rope({ ...input, position_T: Int32Array.of(0, 2) }, options))).toBe('NATIVE_E_VALUE');
  expect(codeOf(() => rope({ ...input, position_T: Int32Array.of(0, -1) }, options))).toBe('NATIVE_E_VALUE');
  expect(codeOf(() => rope({ ...input, position_T: Int32Array.of(0) }, options))).toBe('NATIVE_E_LENGTH');
  expect(codeOf(() => rope({ ...input, sin_PF: new Float32Array(2) }, options))).toBe('NATIVE_E_LENGTH');
  expect(codeOf(() => rope({ ...input, cos_PF: new Float32Array(3) }, options))).toBe('NATIVE_E_LENGTH');
  expect(codeOf(() => rope(input, { ...options, frequencies: 3 }))).toBe('NATIVE_E_LENGTH');
  expect(codeOf(() => rope({ ...input, ...ropeTables(2, [1, 1, 1]) }, { ...options, frequencies: 3 }))).toBe(
    'NATIVE_E_OPTION',
  );
  expect(codeOf(() => rope(input, { ...options, pairs: 'quarter' as never }))).toBe('NATIVE_E_OPTION');
  expect(codeOf(() => ropeBackward({ ...input, x_THD: [] as never }, options))).toBe('NATIVE_E_TYPE');
});
