import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { adamw, adamwCoefficients, type AdamwArrays, type AdamwOptions } from './index.js';
import { adamwReference } from './testing/adamw-reference.js';
import { close, codeOf } from './testing/close.js';
import { goldenCases } from './testing/golden.js';
import { implementations } from './testing/implementations.js';

const value = fc.float({ min: -2, max: 2, noNaN: true });
const cases = fc.record({
  steps: fc.array(fc.array(value, { minLength: 19, maxLength: 19 }), { minLength: 1, maxLength: 6 }),
  param: fc.array(value, { minLength: 19, maxLength: 19 }),
  lr: fc.double({ min: 1e-5, max: 0.1, noNaN: true }),
  betas: fc.constantFrom([0.9, 0.999] as const, [0, 0.95] as const),
  weightDecay: fc.constantFrom(0, 0.1),
  gradScale: fc.constantFrom(1, 0.25),
});

type Arrays = Record<string, number[] | number[][]>;
interface Golden {
  cases: {
    name: string;
    args: { lr: number; betas: [number, number]; eps: number; weight_decay: number; max_norm: number | null };
    inputs: { params: Arrays; grads_per_step: Arrays[] };
    outputs: {
      steps: { total_norm: number | null; params: Arrays; exp_avg: Arrays; exp_avg_sq: Arrays }[];
    };
  }[];
}
const flat = (values: number[] | number[][]): number[] => values.flat();

describe.each(implementations)('$name', ({ binding, backend, single }) => {
  const step = (arrays: AdamwArrays, options: AdamwOptions): void => {
    binding.adamw(arrays, { coefficients: adamwCoefficients(options) }, backend);
  };

  test('several steps equal the float64 reference', () => {
    fc.assert(
      fc.property(cases, ({ steps, param, lr, betas, weightDecay, gradScale }) => {
        const arrays = {
          param_N: Float32Array.from(param),
          m_N: new Float32Array(19),
          v_N: new Float32Array(19),
        };
        const want = {
          param_N: Float64Array.from(arrays.param_N),
          m_N: new Float64Array(19),
          v_N: new Float64Array(19),
        };
        steps.forEach((grads, i) => {
          const grad_N = Float32Array.from(grads);
          const options = { lr, betas, eps: 1e-6, weightDecay, step: i + 1, gradScale };
          step({ ...arrays, grad_N }, options);
          adamwReference({ ...want, grad_N }, options);
        });
        close(arrays.m_N, want.m_N, 1e-6, 2e-6, 'm');
        close(arrays.v_N, want.v_N, 1e-6, 2e-6, 'v');
        close(arrays.param_N, want.param_N, 1e-6 + lr * 1e-4, 2e-6, 'param');
      }),
      { numRuns: single ? 30 : 200 },
    );
  });

  // At the bound the file states for float32. Of the two groups only `w` decays; clipping is torch's clip_grad_norm_.
  test.each(goldenCases<Golden['cases'][number]>('adamw.json'))(
    'golden $name',
    ({ args, inputs, outputs }) => {
      expect(outputs.steps).toHaveLength(5);
      for (const [name, initial] of Object.entries(inputs.params)) {
        const param_N = Float32Array.from(flat(initial));
        const [m_N, v_N] = [new Float32Array(param_N.length), new Float32Array(param_N.length)];
        outputs.steps.forEach((want, i) => {
          const grads = inputs.grads_per_step[i]!;
          const norm = Math.hypot(...Object.values(grads).flatMap(flat));
          const gradScale = args.max_norm === null ? 1 : Math.min(1, args.max_norm / (norm + 1e-6));
          const arrays = { param_N, m_N, v_N, grad_N: Float32Array.from(flat(grads[name]!)) };
          const { lr, betas, eps } = args;
          const weightDecay = name === 'w' ? args.weight_decay : 0;
          step(arrays, { lr, betas, eps, weightDecay, step: i + 1, gradScale });
          close(param_N, flat(want.params[name]!), 1e-7, 1e-5, name);
          close(m_N, flat(want.exp_avg[name]!), 1e-7, 1e-5, `m of ${name}`);
          close(v_N, flat(want.exp_avg_sq[name]!), 1e-7, 1e-5, `v of ${name}`);
        });
      }
    },
  );
});

test('misuse is a typed error', () => {
  const arrays = {
    param_N: new Float32Array(4),
    grad_N: new Float32Array(4),
    m_N: new Float32Array(4),
    v_N: new Float32Array(4),
  };
  const options: AdamwOptions = { lr: 0.1, betas: [0.9, 0.99], eps: 1e-8, step: 1 };
  expect(
    codeOf(() => {
      adamw({ ...arrays, m_N: new Float32Array(3) }, options);
    }),
  ).toBe('NATIVE_E_LENGTH');
  expect(
    codeOf(() => {
      adamw({ ...arrays, v_N: [] as never }, options);
    }),
  ).toBe('NATIVE_E_TYPE');
  expect(
    codeOf(() => {
      adamw(arrays, { ...options, step: 0 });
    }),
  ).toBe('NATIVE_E_OPTION');
  expect(
    codeOf(() => {
      adamw(arrays, { ...options, lr: NaN });
    }),
  ).toBe('NATIVE_E_OPTION');
  expect(
    codeOf(() => {
      adamw(arrays, { ...options, betas: [1, 0.9] });
    }),
  ).toBe('NATIVE_E_OPTION');
  expect(
    codeOf(() => {
      adamw(arrays, { ...options, eps: -1 });
    }),
  ).toBe('NATIVE_E_OPTION');
  expect(
    codeOf(() => {
      adamw(arrays, { ...options, gradScale: Infinity });
    }),
  ).toBe('NATIVE_E_OPTION');
});
