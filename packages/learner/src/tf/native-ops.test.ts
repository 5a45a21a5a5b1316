import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  adamw,
  adamwCoefficients,
  linearLogprob,
  linearLogprobBackward,
  rmsNorm,
  rmsNormBackward,
  rope,
  ropeBackward,
  ropeTables,
  swiglu,
  swigluBackward,
  tensorflowOperatorsPath,
  treeAttention,
  treeAttentionBackward,
} from '@treeward/native';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { loadTensorFlow, rawBackend, tensorflowDevice, type Tensor } from './load.js';
import { loadNativeOps, type NativeOps, type NativeOpsLoad } from './native-ops.js';

// The operators are the addon's CPU kernels, which native/ tests against float64 references: here both are given the same
// arrays and must agree to the last bits. native/scripts/tensorflow-device-check.sh runs this file on a GPU, whose kernels have
// another order of sums.
const tf = loadTensorFlow();
const tolerance = tensorflowDevice().device === 'gpu' ? 2e-5 : 1e-6;
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
  const worst = values.reduce((most, x, i) => Math.max(most, x === want[i] ? 0 : Math.abs(x - want[i]!)), 0);
  expect(worst).toBeLessThanOrEqual(tolerance);
}

test.runIf(process.env['TREEWARD_TENSORFLOW'] === 'gpu')('TREEWARD_TENSORFLOW=gpu: it is a GPU', () => {
  expect(tensorflowDevice()).toEqual({ device: 'gpu' });
});

/** Two branches of 4 below a trunk of 3, heads 4 over key heads 2. */
const [K, H, J, D] = [11, 4, 2, 32];
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
      /value has the shape \[10, 2, 32\], must have \[11, 2, 32\]/,
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

describe('norm', () => {
  const [R, G, W] = [12, 3, 10];
  const [x, addend, gradY] = [random([4, 3, W], 9), random([4, 3, W], 10), random([4, 3, W], 11)];
  const gain = random([G, W], 12);
  const options = { width: W, eps: 1e-5 };

  test('with addend and gains: values and gradients are those of the addon', () => {
    const got = ops().rmsNorm(x, 1e-5, { addend, gain });
    const want = rmsNorm({ x_RD: floats(x), addend_RD: floats(addend), gain_GD: floats(gain) }, options);
    expect([got.y.shape, got.scale.shape]).toEqual([
      [4, 3, W],
      [4, 3],
    ]);
    expectClose(got.y, want.y_RD);
    expectClose(got.scale, want.scale_R);
    expectClose(got.sum!, want.sum_RD!);
    const back = ops().rmsNormGrad({ sum: got.sum! }, got.scale, gradY, { addend: gradY, gain });
    const input = { x_RD: want.sum_RD!, scale_R: want.scale_R, gradY_RD: floats(gradY) };
    const wantBack = rmsNormBackward({ ...input, gain_GD: floats(gain), addend_RD: floats(gradY) }, options);
    expectClose(back.gradX, wantBack.gradX_RD);
    expectClose(back.gradGain!, wantBack.gradGain_GD!);
  });

  test('bare, backwards from its result', () => {
    const before = tf.memory().numTensors;
    const { y, scale, sum } = ops().rmsNorm(x, 1e-5);
    const { gradX, gradGain } = ops().rmsNormGrad({ unit: y }, scale, gradY);
    expect([sum, gradGain]).toEqual([undefined, undefined]);
    expect(tf.memory().numTensors).toBe(before + 3);
    const want = rmsNorm({ x_RD: floats(x) }, options);
    expectClose(y, want.y_RD);
    const input = { unit_RD: want.y_RD, scale_R: want.scale_R, gradY_RD: floats(gradY) };
    expectClose(gradX, rmsNormBackward(input, options).gradX_RD);
    expect(want.scale_R).toHaveLength(R);
  });
});

test('rotary positions are those of the addon, there and back', () => {
  const x = random([5, 2, 8], 13);
  const position_T = [0, 3, 3, 1, 2];
  const { cos_PF, sin_PF } = ropeTables(4, [1, 0.1, 0.01]);
  const tables = { cos: tf.tensor2d(cos_PF, [4, 3]), sin: tf.tensor2d(sin_PF, [4, 3]) };
  const input = { x_THD: floats(x), position_T: Int32Array.from(position_T), cos_PF, sin_PF };
  const options = { heads: 2, dim: 8, frequencies: 3 };
  expectClose(ops().rope(x, ints(position_T), tables), rope(input, options));
  expectClose(ops().rope(x, ints(position_T), tables, true), ropeBackward(input, options));
});

test('swiglu is that of the addon', () => {
  const [gate, up, gradY] = [random([7, 5], 14), random([7, 5], 15), random([7, 5], 16)];
  const input = { gate_N: floats(gate), up_N: floats(up) };
  expectClose(ops().swiglu(gate, up), swiglu(input));
  const got = ops().swigluGrad(gate, up, gradY);
  const want = swigluBackward({ ...input, gradY_N: floats(gradY) });
  expectClose(got.gradGate, want.gradGate_N);
  expectClose(got.gradUp, want.gradUp_N);
});

test('an AdamW step is that of the addon, in new tensors', () => {
  const [param, grad, m, v] = [random([4, 3], 17), random([4, 3], 18), random([4, 3], 19), tf.ones([4, 3])];
  const options = {
    lr: 0.01,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weightDecay: 0.1,
    step: 3,
    gradScale: 0.5,
  } as const;
  const arrays = {
    param_N: Float32Array.from(floats(param)),
    grad_N: floats(grad),
    m_N: Float32Array.from(floats(m)),
    v_N: Float32Array.from(floats(v)),
  };
  const old = [...floats(param)];
  const got = ops().adamw(param, grad, { m, v }, tf.tensor1d(adamwCoefficients(options)));
  adamw(arrays, options);
  expectClose(got.param, arrays.param_N);
  expectClose(got.m, arrays.m_N);
  expectClose(got.v, arrays.v_N);
  expect([...floats(param)]).toEqual(old);
});

describe('fused steps refuse what does not fit', () => {
  const x = random([4, 6], 20);
  const misuse: [string, RegExp, () => unknown][] = [
    [
      'norm: gain',
      /gain has the shape \[1, 5\], must have \[1, 6\]/,
      () => ops().rmsNorm(x, 0, { gain: tf.ones([1, 5]) }),
    ],
    [
      'norm: rows',
      /gain_GD must have a number of rows/,
      () => ops().rmsNorm(x, 0, { gain: tf.ones([3, 6]) }),
    ],
    ['norm: addend', /addend has the shape/, () => ops().rmsNorm(x, 0, { addend: tf.ones([6]) })],
    ['norm: eps', /eps must be finite/, () => ops().rmsNorm(x, -1)],
    [
      'rope: position',
      /position_T\[0\]/,
      () => ops().rope(tf.ones([1, 1, 4]), ints([2]), { cos: tf.ones([2, 2]), sin: tf.ones([2, 2]) }),
    ],
    [
      'rope: width',
      /frequencies must be/,
      () => ops().rope(tf.ones([1, 1, 4]), ints([0]), { cos: tf.ones([2, 3]), sin: tf.ones([2, 3]) }),
    ],
    ['swiglu', /up has the shape \[6\]/, () => ops().swiglu(x, tf.ones([6]))],
    ['adamw: shape', /grad has the shape/, () => ops().adamw(x, tf.ones([6]), { m: x, v: x }, tf.zeros([9]))],
    [
      'adamw: coefficients',
      /coefficients has the shape/,
      () => ops().adamw(x, x, { m: x, v: x }, tf.zeros([8])),
    ],
  ];
  test.each(misuse)('%s', (_name, message, call) => {
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

describe('where TensorFlow has a GPU', () => {
  afterEach(() => {
    vi.doUnmock('./load.js');
    vi.unstubAllEnvs();
    vi.resetModules();
  });
  const load = async (path: string): Promise<NativeOpsLoad> => {
    vi.stubEnv('TREEWARD_NATIVE_TENSORFLOW_GPU_PATH', path);
    vi.resetModules();
    vi.doMock('./load.js', async (original) => ({
      ...(await original<object>()),
      tensorflowDevice: () => ({ device: 'gpu' }),
    }));
    return (await import('./native-ops.js')).loadNativeOps();
  };

  test('the operators are not used without their kernels for it, which is said', async () => {
    const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    expect(await load('/absent.node')).toEqual({
      available: false,
      reason: expect.stringMatching(/absent\.node is not built.*build-tensorflow-gpu/) as string,
    });
    expect(said.mock.calls.join()).toMatch(/absent\.node is not built.*TensorFlow's own/);
    said.mockRestore();
  });

  // Any file that loads will do: what differs is how the operators are called.
  test("heads take sizes there are kernels for, matrices TensorFlow's own product", async () => {
    const loaded = await load(tensorflowOperatorsPath());
    if (!loaded.available) throw new Error(loaded.reason);
    const [query, key, value, gradOutput] = [
      random([Q, H, 8], 1),
      random([K, J, 8], 2),
      random([K, J, 8], 3),
      random([Q, H, 8], 4),
    ];
    const spied = vi.spyOn(rawBackend(tf), 'executeMultipleOutputs');
    const before = tf.memory().numTensors;
    const got = loaded.ops.treeAttention(query, key, value, visibility);
    const back = loaded.ops.treeAttentionGrad(query, key, value, visibility, got, gradOutput);
    expect(tf.memory().numTensors).toBe(before + 5);
    const heads = spied.mock.calls.map(([, , inputs]) => inputs[0]!.shape.at(-1));
    expect(heads).toEqual([32, 32]);
    const want = ops().treeAttention(query, key, value, visibility);
    const wantBack = ops().treeAttentionGrad(query, key, value, visibility, want, gradOutput);
    expectClose(got.output, floats(want.output));
    expectClose(got.lse, floats(want.lse));
    expectClose(back.gradQuery, floats(wantBack.gradQuery));
    expectClose(back.gradKey, floats(wantBack.gradKey));
    expectClose(back.gradValue, floats(wantBack.gradValue));
    const [a, b] = [random([5, 3], 21), random([4, 5], 22)];
    expectClose(loaded.ops.matMul(a, b, true, true), floats(ops().matMul(a, b, true, true)));
    expect(spied.mock.calls.map(([name]) => name)).toContain('MatMul');
    spied.mockRestore();
  });
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
