import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { policyLoss, type PolicyLossInput, type PolicyLossOptions } from './index.js';
import { implementations } from './testing/implementations.js';
import { policyLossReference } from './testing/policy-loss-reference.js';
import { sameBits } from './testing/same-bits.js';

const options: PolicyLossOptions = { clipLow: 0.2, clipHigh: 0.28, truncation: 2, normaliser: 4 };
const input = (changes: Partial<PolicyLossInput> = {}): PolicyLossInput => ({
  logp_T: Float32Array.of(-1, -2, -0.5, -3),
  logpOld_T: Float32Array.of(-1.1, -1.9, -0.5, -2),
  logpRollout_T: Float32Array.of(-1, -3, -0.5, -2.2),
  advantages_T: Float32Array.of(1, -1, 0.5, -2),
  mask_T: Float32Array.of(1, 1, 0, 1),
  ...changes,
});

const float = (min: number, max: number): fc.Arbitrary<number> =>
  fc.float({ min: Math.fround(min), max: Math.fround(max), noNaN: true });
const token = fc.record({
  logp: float(-30, 0),
  old: float(-30, 0),
  rollout: float(-30, 0),
  advantage: float(-5, 5),
  mask: fc.constantFrom(0, 1, 1, 1, 0.5),
});

const someOptions: fc.Arbitrary<PolicyLossOptions> = fc.record({
  clipLow: fc.double({ min: 0, max: 1, noNaN: true }),
  clipHigh: fc.double({ min: 0, max: 4, noNaN: true }),
  truncation: fc.oneof(
    fc.constant(Infinity),
    fc.double({ min: 1e-3, max: 100, noNaN: true, minExcluded: true }),
  ),
  normaliser: fc.double({ min: 0.5, max: 1e5, noNaN: true }),
  objective: fc.constantFrom('ppo', 'cispo', 'gspo'),
  dualClip: fc.constantFrom(Infinity, 1.5, 3),
  importance: fc.constantFrom('truncate', 'mask'),
  importanceLow: fc.constantFrom(0, 1e-3),
  kl: fc.constantFrom('none', 'k1', 'k2', 'k3'),
  klCoef: fc.constantFrom(0, 0.1),
  klMax: fc.constantFrom(Infinity, 10),
  entropyCoef: fc.constantFrom(0, 0.01),
  logRatioMax: fc.constantFrom(20, 10),
});

type Token = Record<'logp' | 'old' | 'rollout' | 'advantage' | 'mask', number>;

function arraysOf(tokens: readonly Token[]): Required<PolicyLossInput> {
  const of = (pick: (t: Token) => number): Float32Array => Float32Array.from(tokens, pick);
  const third = Math.floor(tokens.length / 3);
  return {
    logp_T: of((t) => t.logp),
    logpOld_T: of((t) => t.old),
    logpRollout_T: of((t) => t.rollout),
    advantages_T: of((t) => t.advantage),
    mask_T: of((t) => t.mask),
    logpRef_T: of((t) => t.rollout / 2),
    entropy_T: of((t) => -t.old / 10),
    sequenceOffset_S1: Int32Array.of(0, third, 2 * third, tokens.length),
  };
}

test('cpu: value and gradient equal the float64 reference in every mode (PPO with entropies is not the plain one)', () => {
  fc.assert(
    fc.property(fc.array(token, { maxLength: 200 }), someOptions, (tokens, random) => {
      const arrays = arraysOf(tokens);
      const got = policyLoss(arrays, random);
      const want = policyLossReference(arrays, random);
      // Sums of up to 200 terms of mixed sign: relative to the sum of magnitudes, exp may differ by an ulp.
      let magnitude = 0;
      tokens.forEach((_, i) => {
        const error = Math.abs(got.gradLogp_T[i]! - Math.fround(want.gradLogp_T[i]!));
        // k3 near 0 is a series: its terms are of the order of the coefficient.
        expect(error).toBeLessThanOrEqual(1.3e-7 * Math.abs(want.gradLogp_T[i]!) + 1e-15 / random.normaliser);
      });
      for (let t = 0; t < tokens.length; t++) {
        const one = { ...arrays, mask_T: arrays.mask_T.map((m, i) => (i === t ? m : 0)) };
        magnitude +=
          random.objective === 'gspo'
            ? Math.abs(got.loss) + 1
            : Math.abs(policyLossReference(one, random).loss);
      }
      expect(Math.abs(got.loss - want.loss)).toBeLessThanOrEqual(
        1e-9 * (random.objective === 'gspo' ? 1 : 0) * magnitude + 2e-12 * magnitude + 1e-15,
      );
    }),
    { numRuns: 300 },
  );
});

test('cpu: plain PPO is float32 with sums in float64', () => {
  fc.assert(
    fc.property(fc.array(token, { maxLength: 200 }), someOptions, (tokens, random) => {
      const { logpRef_T: _ref, entropy_T: _entropy, ...arrays } = arraysOf(tokens);
      const plain = { ...random, objective: 'ppo', kl: 'none', klCoef: 0, entropyCoef: 0 } as const;
      const { logRatioMax = 20, importanceLow = 0, dualClip = Infinity } = plain;
      // Products with smaller ones leave the normal numbers.
      arrays.advantages_T.forEach((a, t) => {
        if (Math.abs(a) < 1e-15) arrays.advantages_T[t] = 0;
      });
      // At an edge (of a clip, of a weight's bounds, of the clamp) either side is right: such tokens are left out.
      const edges = [1 - plain.clipLow, 1 + plain.clipHigh, plain.truncation, importanceLow, dualClip];
      arrays.mask_T.forEach((_, t) => {
        const logs = [
          arrays.logp_T[t]! - arrays.logpOld_T[t]!,
          arrays.logpOld_T[t]! - arrays.logpRollout_T[t]!,
        ];
        const near = (x: number, edge: number): boolean =>
          Number.isFinite(edge) && Math.abs(x - edge) <= 4e-6 * Math.abs(edge);
        if (logs.some((x) => near(Math.abs(x), logRatioMax) || edges.some((edge) => near(Math.exp(x), edge))))
          arrays.mask_T[t] = 0;
      });
      const got = policyLoss(arrays, plain);
      const want = policyLossReference(arrays, plain);
      let magnitude = 0;
      for (let t = 0; t < tokens.length; t++) {
        const error = Math.abs(got.gradLogp_T[t]! - want.gradLogp_T[t]!);
        // A log-ratio of up to 20 rounded to float32 counts 1.2e-6 in its exponential.
        expect(error).toBeLessThanOrEqual(4e-6 * Math.abs(want.gradLogp_T[t]!) + 1e-37);
        const one = { ...arrays, mask_T: arrays.mask_T.map((m, i) => (i === t ? m : 0)) };
        magnitude += Math.abs(policyLossReference(one, plain).loss);
      }
      expect(Math.abs(got.loss - want.loss)).toBeLessThanOrEqual(4e-6 * magnitude + 1e-30);
      expect(got.stats.tokens).toBe(arrays.mask_T.filter((m) => m !== 0).length);
    }),
    { numRuns: 300 },
  );
});

test('cpu: plain PPO has the statistics of the float64 implementation at any length', () => {
  let state = 3;
  const uniform = (): number => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  for (const T of [1, 7, 8, 9, 127, 129, 16_383, 40_001]) {
    const tokens = Array.from({ length: T }, () => ({
      logp: -4 * uniform(),
      old: -4 * uniform(),
      rollout: -4 * uniform(),
      advantage: 2 * uniform() - 1,
      mask: uniform() < 0.3 ? 0 : 1,
    }));
    const { logpRef_T: _ref, entropy_T, ...arrays } = arraysOf(tokens);
    for (const mode of [{}, { dualClip: 1.7 }, { importance: 'mask', importanceLow: 0.3 }] as const) {
      const [got, want] = [
        policyLoss(arrays, { ...options, ...mode }),
        policyLoss({ ...arrays, entropy_T }, { ...options, ...mode }),
      ];
      const { entropy: _mean, ...stats } = want.stats;
      for (const [name, value] of Object.entries(stats)) {
        const error = Math.abs(got.stats[name as keyof typeof stats] - value);
        expect(error, `${name} at T=${T}`).toBeLessThanOrEqual(2e-6 * Math.abs(value));
      }
      expect(Math.abs(got.loss - want.loss)).toBeLessThanOrEqual(1e-6 * T);
    }
  }
});

test('results go into arrays of the caller, which must fit and be apart', () => {
  const arrays = input();
  const gradLogp_T = new Float32Array(4).fill(NaN);
  const result = policyLoss(arrays, options, { gradLogp_T });
  expect(result.gradLogp_T).toBe(gradLogp_T);
  expect(result).toEqual(policyLoss(arrays, options));
  const refused = (into: unknown, code: string): void =>
    expect(() => policyLoss(arrays, options, into as never)).toThrow(expect.objectContaining({ code }));
  refused({ gradLogp_T: new Float32Array(3) }, 'NATIVE_E_LENGTH');
  refused({ gradLogp_T: new Float64Array(4) }, 'NATIVE_E_TYPE');
  refused({ gradLogp_T: arrays.logp_T }, 'NATIVE_E_VALUE');
  refused({ gradLogp_T: new Float32Array(arrays.mask_T.buffer) }, 'NATIVE_E_VALUE');
  refused(3, 'NATIVE_E_TYPE');
});

test('large results have pages of their own and live as long as they are used', () => {
  const T = 1_500_000;
  const zeros = new Float32Array(T);
  const ones = new Float32Array(T).fill(1);
  const arrays = { logp_T: zeros, logpOld_T: zeros, logpRollout_T: zeros, advantages_T: ones, mask_T: ones };
  const { gradLogp_T, loss } = policyLoss(arrays, { ...options, normaliser: T });
  expect(loss).toBeCloseTo(-1, 10);
  expect(gradLogp_T).toHaveLength(T);
  expect(gradLogp_T.every((g) => g === Math.fround(-1 / T))).toBe(true);
  // Past the caches and not aligned, through the same arrays shifted by one.
  const into = new Float32Array(T + 1).subarray(1);
  policyLoss(arrays, { ...options, normaliser: T }, { gradLogp_T: into });
  expect(sameBits(into, gradLogp_T)).toBe(true);
});

describe.each(implementations.filter(({ single }) => single))('$name', ({ binding, backend }) => {
  test('float32 intermediates: within 1e-5 of the float64 reference, twice the same bits', () => {
    // As in training: ratios that stay away from the edges of the clip and of the weight's bounds, where a float32 ratio
    // may fall on the other side.
    const modes: Partial<PolicyLossOptions>[] = [
      {},
      { objective: 'cispo', kl: 'k2', klCoef: 0.1 },
      { objective: 'gspo', clipLow: 0.01, clipHigh: 0.02, kl: 'k1', klCoef: 0.1 },
      { dualClip: 1.2, importance: 'mask', importanceLow: 0.8, kl: 'k3', klCoef: 0.1, entropyCoef: 0.01 },
    ];
    let state = 7;
    const uniform = (): number => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
    for (const T of [1, 31, 1000]) {
      for (const mode of modes) {
        const tokens = Array.from({ length: T }, () => {
          const old = -4 * uniform();
          const mask = [0, 1, 1, 0.5][Math.floor(4 * uniform())]!;
          return {
            old,
            logp: old + uniform() - 0.5,
            rollout: old + uniform() - 0.5,
            advantage: 2 * uniform() - 1,
            mask,
          };
        });
        const arrays = arraysOf(tokens);
        const all = { ...options, ...mode };
        const [got, again] = [
          binding.policyLoss(arrays, all, backend),
          binding.policyLoss(arrays, all, backend),
        ];
        const want = policyLossReference(arrays, all);
        expect(got).toEqual(again);
        expect(Math.abs(got.loss - want.loss)).toBeLessThanOrEqual(1e-5 * Math.abs(want.loss) + 1e-5);
        want.gradLogp_T.forEach((g, t) => {
          expect(Math.abs(got.gradLogp_T[t]! - g)).toBeLessThanOrEqual(1e-5 * Math.abs(g) + 1e-7);
        });
        const onCpu = policyLoss(arrays, all).stats;
        for (const [name, value] of Object.entries(onCpu)) {
          const stat = got.stats[name as keyof typeof onCpu];
          expect(Math.abs(stat - value), name).toBeLessThanOrEqual(1e-5 * Math.abs(value) + 1e-7);
        }
      }
    }
  });
});

test('the gradient is the slope of the loss', () => {
  const h = 1e-3;
  const base = input();
  const { gradLogp_T } = policyLoss(base, options);
  for (let t = 0; t < 4; t++) {
    const at = (shift: number): number =>
      policyLoss({ ...base, logp_T: base.logp_T.map((x, i) => (i === t ? x + shift : x)) }, options).loss;
    expect((at(h) - at(-h)) / (2 * h)).toBeCloseTo(gradLogp_T[t]!, 3);
  }
});

test('no gradient beyond the clamp of the log-ratio, though the loss counts the token', () => {
  const one = (logp: number): PolicyLossInput => ({
    logp_T: Float32Array.of(logp),
    logpOld_T: Float32Array.of(-25),
    logpRollout_T: Float32Array.of(-25),
    advantages_T: Float32Array.of(-1),
    mask_T: Float32Array.of(1),
  });
  const wide = { ...options, normaliser: 1 };
  expect(policyLoss(one(-4), wide).gradLogp_T[0]).toBe(0);
  expect(policyLoss(one(-4), wide).loss / Math.exp(20)).toBeCloseTo(1, 6);
  expect(policyLoss(one(-6), wide).gradLogp_T[0]).toBeGreaterThan(1e8);
});

test('statistics of a batch worked out by hand', () => {
  const { stats } = policyLoss(input(), options);
  expect(stats.tokens).toBe(3);
  expect(stats.clipfrac).toBeCloseTo(1 / 3); // the last one: ratio e^-1 at a negative advantage
  expect(stats.ratioMax).toBeCloseTo(Math.exp(0.1));
  expect(stats.truncatedFrac).toBeCloseTo(1 / 3); // e^1.1 > 2
  const weights = [Math.exp(-0.1), 2, Math.exp(0.2)];
  const sum = weights.reduce((a, b) => a + b);
  expect(stats.ess).toBeCloseTo(sum ** 2 / (3 * weights.reduce((a, b) => a + b * b, 0)));
  const k3 = (x: number): number => Math.exp(x) - 1 - x;
  expect(stats.approxKl).toBeCloseTo((k3(0.1) + k3(-0.1) + k3(-1)) / 3);
  expect(stats.rolloutKl).toBeCloseTo((k3(-0.1) + k3(1.1) + k3(0.2)) / 3);
});

test('KL estimates keep their digits near 0', () => {
  for (const x of [0, 2 ** -20, -(2 ** -10), 2 ** -7, 0.0099, 0.0101]) {
    const one = Float32Array.of(1);
    const logp_T = Float32Array.of(x);
    const zero = Float32Array.of(0);
    const { stats } = policyLoss(
      { logp_T, logpOld_T: zero, logpRollout_T: zero, advantages_T: one, mask_T: one },
      { ...options, normaliser: 1 },
    );
    const exact = logp_T[0]!;
    const want = Math.expm1(exact) - exact;
    // expm1 minus x itself keeps about 16 digits less those of x.
    expect(Math.abs(stats.approxKl - want)).toBeLessThanOrEqual(3e-7 * want + 1e-16 * Math.abs(exact) * 4);
  }
});

test('what is masked out may hold NaN; nothing at all gives zeros', () => {
  const holes = input({
    advantages_T: Float32Array.of(1, -1, NaN, -2),
    logp_T: Float32Array.of(-1, -2, NaN, -3),
  });
  expect(policyLoss(holes, options).gradLogp_T[2]).toBe(0);
  const empty = policyLoss(input({ mask_T: new Float32Array(4) }), options);
  expect(empty).toMatchObject({ loss: 0, stats: { tokens: 0, ess: 0, approxKl: 0 } });
  expect([...empty.gradLogp_T]).toEqual([0, 0, 0, 0]);
  const none = new Float32Array(0);
  expect(
    policyLoss(
      { logp_T: none, logpOld_T: none, logpRollout_T: none, advantages_T: none, mask_T: none },
      options,
    ).loss,
  ).toBe(0);
});

describe('misuse is a typed error that names the argument', () => {
  const cases: [string, string, RegExp, () => unknown][] = [
    [
      'length',
      'NATIVE_E_LENGTH',
      /mask_T has 3 values, logp_T has 4/,
      () => policyLoss(input({ mask_T: new Float32Array(3) }), options),
    ],
    [
      'element type',
      'NATIVE_E_TYPE',
      /advantages_T must be a Float32Array/,
      () => policyLoss(input({ advantages_T: new Float64Array(4) as unknown as Float32Array }), options),
    ],
    [
      'missing array',
      'NATIVE_E_TYPE',
      /logpOld_T/,
      () => policyLoss(input({ logpOld_T: undefined as unknown as Float32Array }), options),
    ],
    [
      'no input',
      'NATIVE_E_TYPE',
      /inputs must be an object/,
      () => policyLoss(undefined as unknown as PolicyLossInput, options),
    ],
    [
      'NaN advantage',
      'NATIVE_E_VALUE',
      /advantages_T\[1\]/,
      () => policyLoss(input({ advantages_T: Float32Array.of(1, NaN, 1, 1) }), options),
    ],
    [
      'unsampled token',
      'NATIVE_E_VALUE',
      /logpRollout_T\[0\]/,
      () => policyLoss(input({ logpRollout_T: Float32Array.of(NaN, 0, 0, 0) }), options),
    ],
    [
      'infinite logp',
      'NATIVE_E_VALUE',
      /logp_T\[3\]/,
      () => policyLoss(input({ logp_T: Float32Array.of(0, 0, 0, -Infinity) }), options),
    ],
    [
      'negative mask',
      'NATIVE_E_VALUE',
      /mask_T\[0\]/,
      () => policyLoss(input({ mask_T: Float32Array.of(-1, 0, 0, 0) }), options),
    ],
    [
      'NaN mask',
      'NATIVE_E_VALUE',
      /mask_T\[1\]/,
      () => policyLoss(input({ mask_T: Float32Array.of(1, NaN, 0, 0) }), options),
    ],
    ['clipLow', 'NATIVE_E_OPTION', /clipLow/, () => policyLoss(input(), { ...options, clipLow: 1.5 })],
    ['clipHigh', 'NATIVE_E_OPTION', /clipHigh/, () => policyLoss(input(), { ...options, clipHigh: NaN })],
    ['truncation', 'NATIVE_E_OPTION', /truncation/, () => policyLoss(input(), { ...options, truncation: 0 })],
    ['normaliser', 'NATIVE_E_OPTION', /normaliser/, () => policyLoss(input(), { ...options, normaliser: 0 })],
    [
      'option type',
      'NATIVE_E_OPTION',
      /normaliser must be a number/,
      () => policyLoss(input(), { ...options, normaliser: '3' as unknown as number }),
    ],
  ];
  test.each(cases)('%s', (_name, code, message, call) => {
    let thrown: unknown;
    try {
      call();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ name: 'NativeError', code });
    expect((thrown as Error).message).toMatch(message);
  });

  test('a buffer detached by a getter is not read', () => {
    const arrays = input();
    const logp_T = arrays.logp_T;
    const trap = { ...arrays };
    Object.defineProperty(trap, 'mask_T', {
      get: () => {
        structuredClone(logp_T.buffer, { transfer: [logp_T.buffer as ArrayBuffer] });
        return arrays.mask_T;
      },
    });
    expect(() => policyLoss(trap, options)).toThrow(expect.objectContaining({ code: 'NATIVE_E_LENGTH' }));
  });
});
