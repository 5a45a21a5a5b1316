import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { rmsNorm, rmsNormBackward, type RmsNormInput } from './index.js';
import { bfloat16, close, codeOf } from './testing/close.js';
import { implementations } from './testing/implementations.js';
import { rmsNormBackwardReference, rmsNormReference } from './testing/rms-norm-reference.js';

const floats = (n: number, low: number, high: number): fc.Arbitrary<Float32Array> =>
  fc
    .array(fc.float({ min: low, max: high, noNaN: true }), { minLength: n, maxLength: n })
    .map((values) => Float32Array.from(values));

const cases = fc
  .record({
    groups: fc.integer({ min: 0, max: 40 }),
    gains: fc.integer({ min: 1, max: 4 }),
    width: fc.constantFrom(1, 3, 8, 40, 132),
    withGain: fc.boolean(),
    withAddend: fc.boolean(),
  })
  .chain(({ groups, gains, width, withGain, withAddend }) => {
    const rows = groups * (withGain ? gains : 1);
    return fc.record({
      width: fc.constant(width),
      x_RD: floats(rows * width, -4, 4),
      gradY_RD: floats(rows * width, -1, 1),
      addend_RD: withAddend ? floats(rows * width, -1, 1) : fc.constant(undefined),
      gain_GD: withGain ? floats(gains * width, 0.5, 2) : fc.constant(undefined),
    });
  });

const present = <T extends object>(record: T): { [K in keyof T]-?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as never;

describe.each(implementations)('$name', ({ binding, backend, single }) => {
  test('values and gradients equal the float64 reference', () => {
    fc.assert(
      fc.property(cases, ({ width, x_RD, gradY_RD, addend_RD, gain_GD }) => {
        const options = { width, eps: 1e-5 };
        const input: RmsNormInput = present({ x_RD, addend_RD, gain_GD });
        const got = binding.rmsNorm(input, options, backend);
        const want = rmsNormReference(input, options);
        // A row of zeros has the scale 1 / √eps.
        close(got.scale_R, want.scale_R, 1e-6, 1e-5, 'scale');
        close(got.y_RD, want.y_RD, 1e-6, 1e-5, 'y');
        if (addend_RD) expect(got.sum_RD).toEqual(Float32Array.from(want.sum_RD));
        else expect(got.sum_RD).toBeUndefined();
        const kept = { gain_GD, scale_R: got.scale_R, gradY_RD, addend_RD };
        const sum_RD = got.sum_RD ?? x_RD;
        const wantBack = rmsNormBackwardReference(present({ ...kept, x_RD: sum_RD }), options);
        const back = binding.rmsNormBackward(present({ ...kept, x_RD: sum_RD }), options, backend);
        const steep = Math.max(1, ...got.scale_R);
        close(back.gradX_RD, wantBack.gradX_RD, 4e-6 * steep, 1e-5, 'gradX');
        if (gain_GD) close(back.gradGain_GD, wantBack.gradGain_GD, 2e-5, 1e-5, 'gradGain');
        else expect(back.gradGain_GD).toBeUndefined();
        // From the normalised values instead, as a caller without gain keeps them.
        const unit_RD = binding.rmsNorm(present({ x_RD, addend_RD }), options, backend).y_RD;
        const fromUnit = binding.rmsNormBackward(present({ ...kept, unit_RD }), options, backend);
        close(fromUnit.gradX_RD, wantBack.gradX_RD, 4e-6 * steep, 1e-5, 'gradX from y');
        expect(binding.rmsNormBackward(present({ ...kept, x_RD: sum_RD }), options, backend)).toEqual(back);
      }),
      { numRuns: single ? 30 : 200 },
    );
  });

  test('bfloat16 operands are what they stand for', () => {
    const { bits, values } = bfloat16(Float32Array.from({ length: 24 }, (_, i) => Math.sin(i)));
    const got = binding.rmsNorm({ x_RD: bits }, { width: 8 }, backend);
    close(got.y_RD, rmsNormReference({ x_RD: values }, { width: 8 }).y_RD, 1e-6, 1e-6, 'y');
  });
});

test('misuse is a typed error', () => {
  const x_RD = new Float32Array(6);
  const scale_R = new Float32Array(3);
  const options = { width: 2 };
  expect(codeOf(() => rmsNorm({ x_RD }, { width: 4 }))).toBe('NATIVE_E_LENGTH');
  expect(codeOf(() => rmsNorm({ x_RD }, { width: 0 }))).toBe('NATIVE_E_OPTION');
  expect(codeOf(() => rmsNorm({ x_RD }, { width: 2, eps: NaN }))).toBe('NATIVE_E_OPTION');
  expect(codeOf(() => rmsNorm({ x_RD, gain_GD: new Float32Array(4) }, options))).toBe('NATIVE_E_LENGTH');
  expect(codeOf(() => rmsNorm({ x_RD, gain_GD: new Float32Array(0) }, options))).toBe('NATIVE_E_LENGTH');
  expect(codeOf(() => rmsNorm({ x_RD, addend_RD: new Float32Array(5) }, options))).toBe('NATIVE_E_LENGTH');
  expect(codeOf(() => rmsNorm({ x_RD: [1, 2] as never }, options))).toBe('NATIVE_E_TYPE');
  expect(codeOf(() => rmsNorm(null as never, options))).toBe('NATIVE_E_TYPE');
  const back = { scale_R, gradY_RD: x_RD };
  expect(codeOf(() => rmsNormBackward(back, options))).toBe('NATIVE_E_OPTION');
  expect(codeOf(() => rmsNormBackward({ ...back, x_RD, unit_RD: x_RD }, options))).toBe('NATIVE_E_OPTION');
  expect(codeOf(() => rmsNormBackward({ ...back, x_RD, gradY_RD: scale_R }, options))).toBe(
    'NATIVE_E_LENGTH',
  );
  expect(codeOf(() => rmsNormBackward({ ...back, x_RD, scale_R: x_RD }, options))).toBe('NATIVE_E_LENGTH');
});
