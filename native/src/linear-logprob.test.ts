import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { linearLogprob, linearLogprobBackward, type LinearLogprobInput } from './index.js';
import { goldenCases } from './testing/golden.js';
import { implementations, type Implementation } from './testing/implementations.js';
import { linearLogprobReference } from './testing/linear-logprob-reference.js';

function close(
  got: ArrayLike<number>,
  want: ArrayLike<number>,
  relative: number,
  absolute: number,
  what: string,
): void {
  expect(got.length).toBe(want.length);
  for (let i = 0; i < want.length; i++) {
    if (got[i] === want[i]) continue;
    const error = Math.abs(got[i]! - want[i]!);
    if (!(error <= absolute + relative * Math.abs(want[i]!)))
      throw new Error(`${what}[${i}]: got ${got[i]}, want ${want[i]}`);
  }
}

/** Reproducible numbers in [−1, 1). */
function noise(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1103515245 + 12345) % 2147483648) / 1073741824 - 1;
}

function draw(
  T: number,
  D: number,
  V: number,
  seed: number,
  masked: boolean,
): LinearLogprobInput & Record<'gradLogp_T' | 'gradEntropy_T', Float32Array> {
  const next = noise(seed);
  const floats = (n: number): Float32Array => Float32Array.from({ length: n }, next);
  const bias_V = floats(V).map((b, v) => (masked && v % 3 === 1 ? -Infinity : b));
  return {
    hidden_TD: floats(T * D),
    weight_VD: floats(V * D),
    bias_V,
    chosen_T: Int32Array.from({ length: T }, (_, t) => (3 * ((t * 7) % Math.ceil(V / 3))) % V),
    temperature_T: floats(T).map((x) => 1.2 + 0.5 * x),
    gradLogp_T: floats(T),
    gradEntropy_T: floats(T),
  };
}

function both(
  { binding, backend }: Implementation,
  input: ReturnType<typeof draw>,
  options: { hiddenSize: number; temperature?: number },
): ReturnType<typeof linearLogprob> & ReturnType<typeof linearLogprobBackward> {
  const forward = binding.linearLogprob(input, options, backend);
  return { ...forward, ...binding.linearLogprobBackward({ ...input, ...forward }, options, backend) };
}

interface Case {
  name: string;
  args: { temperature: number };
  inputs: { logits: (number | string)[][]; token_ids: number[]; grad_logp: number[]; grad_entropy: number[] };
  outputs: { logp: (number | string)[]; entropy: (number | string)[]; dlogits: (number | string)[][] };
}

describe.each(implementations)('$name', (implementation) => {
  test('equals the float64 reference', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 150 }),
        fc.constantFrom(1, 3, 8, 33, 64),
        fc.constantFrom(1, 2, 17, 130, 600),
        fc.nat({ max: 1e6 }),
        fc.boolean(),
        (T, D, V, seed, masked) => {
          const input = draw(T, D, V, seed + 1, masked);
          const options = { hiddenSize: D, temperature: 0.9 };
          const got = both(implementation, input, options);
          const want = linearLogprobReference(input, options);
          close(got.logp_T, want.logp_T, 1e-5, 2e-5, 'logp');
          close(got.entropy_T, want.entropy_T, 1e-5, 3e-5, 'entropy');
          // Sums of T or V terms of order 1.
          close(got.gradHidden_TD, want.gradHidden_TD, 1e-4, 3e-5, 'gradHidden');
          close(got.gradWeight_VD, want.gradWeight_VD, 1e-4, 3e-5, 'gradWeight');
          expect(both(implementation, input, options)).toEqual(got);
        },
      ),
      { numRuns: implementation.single ? 12 : 60 },
    );
  });

  // A row of logits is a vocabulary of size-1 weights under a hidden state of 1; −Infinity is a bias. Tolerances of golden/README.md
  // for float32: logp and entropy rtol 1e-5, atol 1e-5; dlogits atol 1e-6. `extreme` rows: their small logits drown in float32's 1e-3 at 1e4.
  test.each(goldenCases<Case>('logprob_entropy.json'))('golden $name', ({ name, args, inputs, outputs }) => {
    inputs.logits.forEach((row, t) => {
      const logits_V = row.map(Number);
      const input = {
        hidden_TD: Float32Array.of(1),
        weight_VD: Float32Array.from(logits_V, (z) => (z === -Infinity ? 0 : z)),
        bias_V: Float32Array.from(logits_V, (z) => (z === -Infinity ? z : 0)),
        chosen_T: Int32Array.of(inputs.token_ids[t]!),
        gradLogp_T: Float32Array.of(inputs.grad_logp[t]!),
        gradEntropy_T: Float32Array.of(inputs.grad_entropy[t]!),
        temperature_T: Float32Array.of(1),
      };
      const got = both(implementation, input, { hiddenSize: 1, temperature: args.temperature });
      const largest = Math.max(...logits_V.filter((z) => z > -Infinity).map(Math.abs));
      const rounding = (largest * 2 ** -23) / args.temperature;
      const absolute = /extreme/.test(name) ? 1e-3 : 1e-5 + rounding;
      close(got.logp_T, [Number(outputs.logp[t])], 1e-5, absolute, `logp of row ${t}`);
      close(got.entropy_T, [Number(outputs.entropy[t])], 1e-5, absolute, `entropy of row ${t}`);
      const gradient = /extreme/.test(name) ? 5e-3 : 1e-6 + 4 * rounding;
      close(got.gradWeight_VD, outputs.dlogits[t]!.map(Number), 1e-5, gradient, `dlogits of row ${t}`);
    });
  });

  test('bfloat16 operands', () => {
    const input = draw(40, 16, 200, 5, true);
    const bits = (x: Float32Array): Uint16Array =>
      Uint16Array.from(new Uint32Array(x.buffer), (u) => u >>> 16);
    const wide = (x: Uint16Array): Float32Array =>
      new Float32Array(Uint32Array.from(x, (u) => u << 16).buffer);
    const half = {
      ...input,
      hidden_TD: bits(input.hidden_TD as Float32Array),
      weight_VD: bits(input.weight_VD as Float32Array),
    };
    const got = both(implementation, half, { hiddenSize: 16 });
    const want = linearLogprobReference(
      { ...half, hidden_TD: wide(half.hidden_TD), weight_VD: wide(half.weight_VD) },
      { hiddenSize: 16 },
    );
    close(got.logp_T, want.logp_T, 1e-5, 2e-5, 'logp');
    // d loss / d logits is rounded to bfloat16 on CUDA.
    close(got.gradHidden_TD, want.gradHidden_TD, 1e-2, 1e-2, 'gradHidden');
    close(got.gradWeight_VD, want.gradWeight_VD, 1e-2, 1e-2, 'gradWeight');
  });
});

describe('misuse is a typed error', () => {
  const good = draw(2, 2, 3, 1, false);
  const cases: [string, string, RegExp, Partial<LinearLogprobInput>, object?][] = [
    ['chosen outside', 'NATIVE_E_VALUE', /chosen_T\[1\]/, { chosen_T: Int32Array.of(0, 3) }],
    ['chosen negative', 'NATIVE_E_VALUE', /chosen_T\[0\]/, { chosen_T: Int32Array.of(-1, 0) }],
    ['NaN bias', 'NATIVE_E_VALUE', /bias_V\[2\]/, { bias_V: Float32Array.of(0, 0, NaN) }],
    ['nothing allowed', 'NATIVE_E_VALUE', /bias_V/, { bias_V: new Float32Array(3).fill(-Infinity) }],
    ['temperature 0', 'NATIVE_E_VALUE', /temperature/, {}, { temperature: 0 }],
    ['temperature NaN', 'NATIVE_E_VALUE', /temperature/, { temperature_T: Float32Array.of(1, NaN) }],
    ['hidden length', 'NATIVE_E_LENGTH', /hidden_TD/, { hidden_TD: new Float32Array(3) }],
    ['weight length', 'NATIVE_E_LENGTH', /weight_VD/, { weight_VD: new Float32Array(5) }],
    ['bias length', 'NATIVE_E_LENGTH', /bias_V/, { bias_V: new Float32Array(4) }],
    ['mixed types', 'NATIVE_E_TYPE', /weight_VD/, { weight_VD: new Uint16Array(6) }],
    ['type', 'NATIVE_E_TYPE', /hidden_TD/, { hidden_TD: new Float64Array(4) as unknown as Float32Array }],
    ['hidden size', 'NATIVE_E_OPTION', /hiddenSize/, {}, { hiddenSize: 1.5 }],
  ];
  test.each(cases)('%s', (_name, code, message, changes, options = {}) => {
    let thrown: unknown;
    try {
      linearLogprob({ ...good, ...changes }, { hiddenSize: 2, ...options });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({
      name: 'NativeError',
      code,
      message: expect.stringMatching(message) as string,
    });
  });

  test('backward checks its own arrays; no tokens is no error', () => {
    const forward = linearLogprob(good, { hiddenSize: 2 });
    expect(() =>
      linearLogprobBackward({ ...good, ...forward, gradLogp_T: new Float32Array(1) }, { hiddenSize: 2 }),
    ).toThrow(expect.objectContaining({ code: 'NATIVE_E_LENGTH' }));
    const none = { hidden_TD: new Float32Array(0), weight_VD: good.weight_VD, chosen_T: new Int32Array(0) };
    expect(linearLogprob(none, { hiddenSize: 2 }).logp_T).toHaveLength(0);
  });
});
