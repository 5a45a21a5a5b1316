import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { valueLoss, type ValueLossInput } from './index.js';
import { goldenCases } from './testing/golden.js';
import { implementations } from './testing/implementations.js';
import { valueLossReference } from './testing/value-loss-reference.js';

const float = (min: number, max: number): fc.Arbitrary<number> =>
  fc.float({ min: Math.fround(min), max: Math.fround(max), noNaN: true });
const token = fc.record({
  value: float(-9, 9),
  old: float(-9, 9),
  target: float(-9, 9),
  mask: fc.constantFrom(0, 1, 0.5),
});

describe.each(implementations)('$name', ({ binding, backend, single }) => {
  test('value and gradient equal the float64 reference', () => {
    fc.assert(
      fc.property(
        fc.array(token, { maxLength: 150 }),
        fc.constantFrom(undefined, 0.2, 3),
        fc.double({ min: 0.5, max: 100, noNaN: true }),
        (tokens, clip, normaliser) => {
          const of = (pick: (t: (typeof tokens)[number]) => number): Float32Array =>
            Float32Array.from(tokens, pick);
          const input = {
            values_T: of((t) => t.value),
            valuesOld_T: of((t) => t.old),
            targets_T: of((t) => t.target),
            mask_T: of((t) => t.mask),
          };
          const options = clip === undefined ? { normaliser } : { clip, normaliser };
          const got = binding.valueLoss(input, options, backend);
          const want = valueLossReference(input, options);
          const tolerance = single ? 2e-6 : 1e-12;
          expect(Math.abs(got.loss - want.loss)).toBeLessThanOrEqual(tolerance * Math.abs(want.loss) + 1e-12);
          tokens.forEach(({ value, old, target }, t) => {
            // Where both branches are equal up to rounding either gradient is right.
            const bounded = Math.max(old - (clip ?? Infinity), Math.min(old + (clip ?? Infinity), value));
            if (Math.abs(Math.abs(value - target) - Math.abs(bounded - target)) < 1e-5 && bounded !== value)
              return;
            expect(Math.abs(got.gradValues_T[t]! - want.gradValues_T[t]!)).toBeLessThanOrEqual(
              2e-6 * Math.abs(want.gradValues_T[t]!) + 2e-6 / normaliser,
            );
          });
        },
      ),
      { numRuns: single ? 60 : 300 },
    );
  });

  interface Golden {
    name: string;
    args: Record<string, unknown>;
    inputs: Record<string, number[][]>;
    outputs: Record<string, unknown>;
  }
  // Averages per sequence are weights of the tokens. Inputs are rounded to float32: rtol 1e-5, atol 1e-6.
  test.each(goldenCases<Golden>('value_loss.json'))('golden $name', ({ args, inputs, outputs }) => {
    const mask = inputs['response_mask']!;
    const mode =
      (args['loss_agg_mode'] as string | undefined) ??
      (args['token_level_loss'] ? 'token-mean' : 'seq-mean-token-mean');
    const lengths = mask.map((row) => row.reduce((a, b) => a + b, 0));
    const rows = lengths.filter((length) => length > 0).length;
    const total = lengths.reduce((a, b) => a + b, 0);
    const weights = mask.map((row, b) =>
      row.map((m) => {
        if (mode === 'token-mean') return m / total;
        return mode === 'seq-mean-token-sum' ? m / rows : m / (rows * Math.max(1, lengths[b]!));
      }),
    );
    const flat = (rows_BL: number[][]): Float32Array => Float32Array.from(rows_BL.flat());
    const input: ValueLossInput = {
      values_T: flat(inputs['vpreds']!),
      valuesOld_T: flat(inputs['values']!),
      targets_T: flat(inputs['returns']!),
      mask_T: flat(weights),
    };
    const clip = (args['cliprange_value'] ?? args['clip_eps']) as number | null;
    const result = binding.valueLoss(input, { normaliser: 1, ...(clip === null ? {} : { clip }) }, backend);
    const wantLoss = (outputs['loss'] ?? outputs['vf_loss']) as number;
    expect(Math.abs(result.loss - wantLoss)).toBeLessThanOrEqual(1e-5 * Math.abs(wantLoss) + 1e-6);
    const gradName = Object.keys(outputs).find((name) => name.startsWith('grad'))!;
    const want_T = (outputs[gradName] as number[][]).flat();
    expect(want_T.length).toBe(result.gradValues_T.length);
    want_T.forEach((g, t) =>
      expect(Math.abs(result.gradValues_T[t]! - g)).toBeLessThanOrEqual(1e-5 * Math.abs(g) + 1e-6),
    );
  });
});

test('statistics and misuse', () => {
  const one = (changes: Partial<ValueLossInput> = {}): ValueLossInput => ({
    values_T: Float32Array.of(1, 2, 3),
    valuesOld_T: Float32Array.of(1, 2, 1),
    targets_T: Float32Array.of(1, 3, 2),
    mask_T: Float32Array.of(1, 1, 1),
    ...changes,
  });
  const { stats } = valueLoss(one(), { clip: 0.5, normaliser: 3 });
  expect(stats).toMatchObject({ tokens: 3, clipfrac: 0 });
  expect(stats.explainedVariance).toBeCloseTo(1 - 2 / 3 / (2 / 3));
  const code = (call: () => unknown): unknown => {
    try {
      return call();
    } catch (error) {
      return (error as { code?: string }).code;
    }
  };
  expect(code(() => valueLoss(one({ targets_T: Float32Array.of(1, NaN, 2) }), { normaliser: 1 }))).toBe(
    'NATIVE_E_VALUE',
  );
  expect(code(() => valueLoss(one({ mask_T: new Float32Array(2) }), { normaliser: 1 }))).toBe(
    'NATIVE_E_LENGTH',
  );
  expect(code(() => valueLoss(one(), { normaliser: 1, clip: 0 }))).toBe('NATIVE_E_OPTION');
  expect(code(() => valueLoss(undefined as unknown as ValueLossInput, { normaliser: 1 }))).toBe(
    'NATIVE_E_TYPE',
  );
});
