import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { linearLogprob, linearLogprobBackward, treeAttention, treeAttentionBackward } from '@treeward/native';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { loadTensorFlow, type Tensor } from './load.js';
import { loadNativeOps, type NativeOps } from './native-ops.js';

// The operators are the addon's CPU kernels, which native/ tests against float64 references: here both are given the same
// arrays and must agree to the last bits.
const tf = loadTensorFlow();
const ops = (): NativeOps => {
  const loaded = loadNativeOps();
  if (!loaded.available) throw new Error(loaded.reason);
  return loaded.ops;
};
const floats = (t: Tensor): Float32Array => t.dataSync() as Float32Array;
const ints = (values: readonly number[]): Tensor => tf.tensor1d(Int32Array.from(values), 'int32');
const random = (shape: number[], seed: number): Tensor => tf.randomNormal(shape, 0, 1, 'float32', seed);

function expectClose(got: Tensor, want: ArrayLike<number>): void {
  const values = floats(got);
  expect(values.length).toBe(want.length);
  const worst = values.reduce((most, x, i) => Math.max(most, Math.abs(x - want[i]!)), 0);
  expect(worst).toBeLessThanOrEqual(1e-6);
}

/** Two branches of 4 below a trunk of 3, heads 4 over key heads 2. */
const [K, H, J, D] = [11, 4, 2, 8];
const end_K = [11, 11, 11, 7, 7, 7, 7, 11, 11, 11, 11];
const position_Q = [...end_K.keys(), 2, -1];
const Q = position_Q.length;
const history = {
  start: position_Q.map((p) => (p >= 7 ? 5 : 0)),
  finish: end_K.map((_, k) => (k >= 3 && k < 7 ? 4 : 9)),
  firstKey: position_Q.map(() => 0),
  lastKey: position_Q.map(() => K),
};
const operands = {
  query: random([Q, H, D], 1),
  key: random([K, J, D], 2),
  value: random([K, J, D], 3),
  gradOutput: random([Q, H, D], 4),
};
const visibility = { position: ints(position_Q), end: ints(end_K) };

describe('tree attention', () => {
  test.each([
    ['ancestors', false],
    ['happens-before', true],
  ])('%s: output and gradients are those of the addon', (_name, past) => {
    const { query, key, value, gradOutput } = operands;
    const { start, finish, firstKey, lastKey } = history;
    const sees = past
      ? {
          ...visibility,
          history: {
            start: ints(start),
            finish: ints(finish),
            firstKey: ints(firstKey),
            lastKey: ints(lastKey),
          },
        }
      : visibility;
    const got = ops().treeAttention(query, key, value, sees);
    expect(got.output.shape).toEqual([Q, H, D]);
    expect(got.lse.shape).toEqual([Q, H]);
    const input = {
      query_QHD: floats(query),
      key_KJD: floats(key),
      value_KJD: floats(value),
      position_Q: Int32Array.from(position_Q),
      end_K: Int32Array.from(end_K),
      ...(past
        ? {
            start_Q: Int32Array.from(start),
            finish_K: Int32Array.from(finish),
            firstKey_Q: Int32Array.from(firstKey),
            lastKey_Q: Int32Array.from(lastKey),
          }
        : {}),
    };
    const options = { heads: H, keyHeads: J, dim: D };
    const want = treeAttention(input, options);
    expectClose(got.output, want.output_QHD);
    const gradients = ops().treeAttentionGrad(query, key, value, sees, got, gradOutput);
    const backward = treeAttentionBackward(
      { ...input, ...want, gradOutput_QHD: floats(gradOutput) },
      options,
    );
    expectClose(gradients.gradQuery, backward.gradQuery_QHD);
    expectClose(gradients.gradKey, backward.gradKey_KJD);
    expectClose(gradients.gradValue, backward.gradValue_KJD);
    expect(gradients.gradKey.shape).toEqual([K, J, D]);
  });

  const { query, key, value } = operands;
  const misuse: [string, RegExp, () => unknown][] = [
    [
      'rank',
      /key has the shape \[11, 16\]/,
      () => ops().treeAttention(query, tf.zeros([K, 16]), value, visibility),
    ],
    [
      'size',
      /value has the shape \[10, 2, 8\], must have \[11, 2, 8\]/,
      () => ops().treeAttention(query, key, tf.zeros([10, J, D]), visibility),
    ],
    [
      'heads',
      /keyHeads must divide heads/,
      () => ops().treeAttention(query, tf.zeros([K, 3, D]), tf.zeros([K, 3, D]), visibility),
    ],
    [
      'position',
      /position_Q\[0\]/,
      () =>
        ops().treeAttention(query, key, value, { ...visibility, position: ints(position_Q.map(() => K)) }),
    ],
    [
      'subtree',
      /end_K\[1\]/,
      () => ops().treeAttention(query, key, value, { ...visibility, end: ints(end_K.map(() => 1)) }),
    ],
    ['type', /int32/i, () => ops().treeAttention(query, key, value, { ...visibility, end: tf.zeros([K]) })],
    ['scale', /scale must be finite/, () => ops().treeAttention(query, key, value, visibility, NaN)],
    [
      'gradient',
      /lse has the shape \[13\]/,
      () =>
        ops().treeAttentionGrad(query, key, value, visibility, { output: query, lse: tf.zeros([Q]) }, query),
    ],
  ];
  test.each(misuse)('misuse is a typed error: %s', (_name, message, call) => {
    expect(call).toThrow(
      expect.objectContaining({
        code: 'LEARNER_E_OPERATOR',
        message: expect.stringMatching(message) as string,
      }) as Error,
    );
  });
});

describe('linear log-probability', () => {
  const [T, V] = [9, 40];
  const hidden = random([T, D], 5);
  const weight = random([V, D], 6);
  const chosen = [...Array(T).keys()].map((t) => t * 3);
  const inverseTemperature = tf.fill([T], 0.8);
  const inputs = { hidden, weight, chosen: ints(chosen), inverseTemperature };

  test.each([
    ['without', undefined],
    ['with', Float32Array.from({ length: V }, (_, v) => (v === 39 ? -Infinity : v / V))],
  ])('%s bias: values and gradients are those of the addon', (_name, bias_V) => {
    const given = bias_V ? { ...inputs, bias: tf.tensor1d(bias_V) } : inputs;
    const [gradLogp, gradEntropy] = [random([T], 7), random([T], 8)];
    const got = ops().linearLogprob(given);
    const input = {
      hidden_TD: floats(hidden),
      weight_VD: floats(weight),
      chosen_T: Int32Array.from(chosen),
      ...(bias_V ? { bias_V } : {}),
    };
    const options = { hiddenSize: D, temperature: 1 / Math.fround(0.8) };
    const want = linearLogprob(input, options);
    expectClose(got.logp, want.logp_T);
    expectClose(got.entropy, want.entropy_T);
    const gradients = ops().linearLogprobGrad(given, got, gradLogp, gradEntropy);
    const backward = linearLogprobBackward(
      { ...input, ...want, gradLogp_T: floats(gradLogp), gradEntropy_T: floats(gradEntropy) },
      options,
    );
    expectClose(gradients.gradHidden, backward.gradHidden_TD);
    expectClose(gradients.gradWeight, backward.gradWeight_VD);
    expect(gradients.gradWeight.shape).toEqual([V, D]);
  });

  const misuse: [string, RegExp, () => unknown][] = [
    [
      'size',
      /weight has the shape \[40, 7\]/,
      () => ops().linearLogprob({ ...inputs, weight: tf.zeros([V, 7]) }),
    ],
    ['chosen', /chosen_T\[0\]/, () => ops().linearLogprob({ ...inputs, chosen: ints(chosen.map(() => V)) })],
    [
      'temperature',
      /temperature\[0\]/,
      () => ops().linearLogprob({ ...inputs, inverseTemperature: tf.zeros([T]) }),
    ],
    ['bias', /bias_V\[0\]/, () => ops().linearLogprob({ ...inputs, bias: tf.fill([V], Infinity) })],
  ];
  test.each(misuse)('misuse is a typed error: %s', (_name, message, call) => {
    expect(call).toThrow(
      expect.objectContaining({
        code: 'LEARNER_E_OPERATOR',
        message: expect.stringMatching(message) as string,
      }) as Error,
    );
  });
});

test('operators leave nothing behind, after errors neither', () => {
  const before = tf.memory().numTensors;
  tf.tidy(() => {
    const { query, key, value } = operands;
    for (let i = 0; i < 20; i++) {
      ops().treeAttention(query, key, value, visibility);
      expect(() =>
        ops().treeAttention(query, value, key, { ...visibility, end: visibility.position }),
      ).toThrow();
    }
  });
  expect(tf.memory().numTensors).toBe(before);
});

describe('what is not there is said', () => {
  const folder = mkdtempSync(join(tmpdir(), 'native-ops-'));
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.resetModules();
  });
  test.each([
    ['not built', join(folder, 'absent.node'), /not built.*build-tensorflow/],
    ['not a library', join(folder, 'text.node'), /does not load/],
  ])('%s', async (_name, path, reason) => {
    if (path.endsWith('text.node')) writeFileSync(path, 'text');
    vi.stubEnv('TREEWARD_NATIVE_TENSORFLOW_PATH', path);
    vi.resetModules();
    const fresh = await import('./native-ops.js');
    expect(fresh.loadNativeOps()).toEqual({
      available: false,
      reason: expect.stringMatching(reason) as string,
    });
    rmSync(path, { force: true });
  });
});
