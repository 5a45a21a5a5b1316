import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { swiglu, swigluBackward } from './index.js';
import { bfloat16, close, codeOf } from './testing/close.js';
import { implementations } from './testing/implementations.js';
import { swigluReference } from './testing/swiglu-reference.js';

const value = (most: number): fc.Arbitrary<number> => fc.float({ min: -most, max: most, noNaN: true });
const rows = fc.array(fc.tuple(value(100), value(4), value(2)), { maxLength: 1300, size: 'max' });

describe.each(implementations)('$name', ({ binding, backend, single }) => {
  test('values and gradients equal the float64 reference', () => {
    fc.assert(
      fc.property(rows, (drawn) => {
        const column = (i: 0 | 1 | 2): Float32Array => Float32Array.from(drawn, (row) => row[i]);
        const [gate_N, up_N, gradY_N] = [column(0), column(1), column(2)];
        const want = swigluReference(gate_N, up_N, gradY_N);
        close(binding.swiglu({ gate_N, up_N }, {}, backend), want.y_N, 1e-6, 2e-6, 'y');
        const got = binding.swigluBackward({ gate_N, up_N, gradY_N }, {}, backend);
        close(got.gradGate_N, want.gradGate_N, 4e-6, 4e-6, 'gradGate');
        close(got.gradUp_N, want.gradUp_N, 2e-6, 2e-6, 'gradUp');
      }),
      { numRuns: single ? 20 : 60 },
    );
  });

  test('bfloat16 operands are what they stand for; large gates neither overflow nor vanish', () => {
    const gate = bfloat16(Float32Array.of(1.5, -2, 1000, -1000, 0));
    const up = bfloat16(Float32Array.of(2, 3, 4, 5, 6));
    const got = binding.swiglu({ gate_N: gate.bits, up_N: up.bits }, {}, backend);
    close(got, swigluReference(gate.values, up.values).y_N, 1e-6, 1e-6, 'y');
  });
});

test('misuse is a typed error', () => {
  const gate_N = new Float32Array(4);
  expect(codeOf(() => swiglu({ gate_N, up_N: new Float32Array(3) }))).toBe('NATIVE_E_LENGTH');
  expect(codeOf(() => swiglu({ gate_N, up_N: new Uint16Array(4) }))).toBe('NATIVE_E_TYPE');
  expect(codeOf(() => swiglu({ gate_N } as never))).toBe('NATIVE_E_TYPE');
  expect(codeOf(() => swigluBackward({ gate_N, up_N: gate_N, gradY_N: new Float32Array(5) }))).toBe(
    'NATIVE_E_LENGTH',
  );
});
