import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { adamwCoefficients, ropeTables } from '@treeward/native';
import { beforeAll, describe, expect, test } from 'vitest';
import { loadTensorFlow, rawBackend, type OpAttribute, type Tensor } from './load.js';
import { loadNativeOps, type NativeOps } from './native-ops.js';

// The kernels for TensorFlow's GPU, as far as they can be tried without one: the same sources registered for its CPU, over the
// `.cu` sources on CPU fibers. They answer to nodes with `_kernel`, so that both kinds are called here side by side.
const full = process.env['TREEWARD_TEST_FULL'] === '1';
const native = fileURLToPath(new URL('../../../../native', import.meta.url));
const MINUTES = 15 * 60_000;

const tf = loadTensorFlow();
const backend = rawBackend(tf);
const ops = (): NativeOps => {
  const loaded = loadNativeOps();
  if (!loaded.available) throw new Error(loaded.reason);
  return loaded.ops;
};

function withDeviceKernels<T>(call: () => T): T {
  const plain = backend.executeMultipleOutputs;
  const label: OpAttribute = {
    name: '_kernel',
    type: backend.binding['TF_ATTR_STRING']!,
    value: 'fibers',
  };
  backend.executeMultipleOutputs = (name, attributes, inputs, count) =>
    plain.call(
      backend,
      name,
      name.startsWith('Treeward') ? [...attributes, label] : attributes,
      inputs,
      count,
    );
  try {
    return call();
  } finally {
    backend.executeMultipleOutputs = plain;
  }
}

/** The same call with the CPU's kernels and with the device's. */
function expectSame(call: () => Record<string, Tensor | undefined>): void {
  const want = call();
  const got = withDeviceKernels(call);
  for (const [name, tensor] of Object.entries(want)) {
    const device = got[name];
    expect(device?.shape, name).toEqual(tensor?.shape);
    const a = tensor ? floats(tensor) : new Float32Array();
    const b = device ? floats(device) : new Float32Array();
    const worst = a.reduce((most, x, i) => {
      const y = b[i]!;
      return x === y ? most : Math.max(most, Math.abs(x - y) / (1 + Math.abs(x)));
    }, 0);
    // A product of matrices is three of TF32 there.
    expect(worst, name).toBeLessThan(2e-5);
  }
}

/** What either says; the same, and no crash. */
function expectSameRefusal(call: () => unknown, pattern: RegExp): void {
  const said = [call, () => withDeviceKernels(call)].map((attempt) => {
    try {
      attempt();
    } catch (error) {
      return (error as Error).message;
    }
    return 'nothing';
  });
  expect(said[0]).toMatch(pattern);
  expect(said[1]).toBe(said[0]);
}

const floats = (t: Tensor): Float32Array => t.dataSync() as Float32Array;
const random = (shape: number[], seed: number): Tensor => tf.randomNormal(shape, 0, 1, 'float32', seed);
const ints = (values: readonly number[]): Tensor => tf.tensor1d(Int32Array.from(values), 'int32');

describe.runIf(full)(
  'kernels for a GPU, on fibers (TREEWARD_TEST_FULL=1: fetches 230 MB of headers once and compiles for two minutes)',
  () => {
    beforeAll(() => {
      ops();
      execFileSync(`${native}/scripts/build-tensorflow-gpu.sh`, ['--fibers'], { stdio: 'pipe' });
      createRequire(import.meta.url)(`${native}/build/tensorflow/treeward_tensorflow_on_fibers.node`);
    }, MINUTES);

    test.each([
      [[5, 3, 40], true],
      [[7, 10], false],
      [[600, 8], true],
      [[0, 8], true],
    ])('norm of %j, gain and addend: %j', (shape, more) => {
      const [x, addend, gradY] = [random(shape, 1), random(shape, 2), random(shape, 3)];
      const gain = random([shape.length === 3 ? 3 : 1, shape.at(-1)!], 4);
      expectSame(() => {
        const out = ops().rmsNorm(x, 1e-5, more ? { addend, gain } : {});
        const kept = out.sum ? { sum: out.sum } : { unit: out.y };
        return { ...out, ...ops().rmsNormGrad(kept, out.scale, gradY, more ? { addend, gain } : {}) };
      });
    });

    test('gated unit, rotary positions, an AdamW step', () => {
      const [a, b, c] = [random([9, 37], 5), random([9, 37], 6), random([9, 37], 7)];
      expectSame(() => ({ y: ops().swiglu(a, b), ...ops().swigluGrad(a, b, c) }));
      const { cos_PF, sin_PF } = ropeTables(6, [1, 0.1, 0.01]);
      const tables = { cos: tf.tensor2d(cos_PF, [6, 3]), sin: tf.tensor2d(sin_PF, [6, 3]) };
      const [x, position] = [random([5, 2, 8], 8), ints([0, 5, 3, 1, 2])];
      expectSame(() => ({
        there: ops().rope(x, position, tables),
        back: ops().rope(x, position, tables, true),
      }));
      const options = { lr: 0.01, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0.1, step: 3 } as const;
      const coefficients = tf.tensor1d(adamwCoefficients(options));
      expectSame(() => ops().adamw(a, b, { m: c, v: tf.square(a) }, coefficients) as Record<string, Tensor>);
    });

    test.each([
      [150, 48, 300, false],
      [9, 24, 40, true],
      [0, 24, 40, false],
    ])('log-probabilities of %i tokens, %i wide, of %i, bias: %j', (T, D, V, biased) => {
      const inputs = {
        hidden: random([T, D], 9),
        weight: random([V, D], 10),
        chosen: ints(Array.from({ length: T }, (_, t) => (t * 7) % (V - 1))),
        inverseTemperature: tf.fill([T], 0.8),
        ...(biased
          ? { bias: tf.tensor1d(Array.from({ length: V }, (_, v) => (v === V - 1 ? -Infinity : v / V))) }
          : {}),
      };
      expectSame(() => {
        const out = ops().linearLogprob(inputs);
        return { ...out, ...ops().linearLogprobGrad(inputs, out, random([T], 11), random([T], 12)) };
      });
    });

    test.each([
      [70, 32, false],
      [70, 64, true],
      [0, 32, false],
    ])('attention over a tree of %i tokens, heads of %i, happens-before: %j', (K, D, past) => {
      const [H, J] = [4, 2];
      const trunk = Math.floor(K / 3);
      const end_K = Array.from({ length: K }, (_, k) => (k < trunk || k >= 2 * trunk ? K : 2 * trunk));
      const position_Q = [...end_K.keys(), -1, ...(K > 0 ? [trunk - 1] : [])];
      const Q = position_Q.length;
      const history = {
        start: ints(position_Q.map((p) => (p >= 2 * trunk ? 5 : 0))),
        finish: ints(end_K.map((end) => (end < K ? 4 : 9))),
        firstKey: ints(position_Q.map(() => 0)),
        lastKey: ints(position_Q.map(() => K)),
      };
      const sees = { position: ints(position_Q), end: ints(end_K), ...(past ? { history } : {}) };
      const [q, k, v, g] = [
        random([Q, H, D], 13),
        random([K, J, D], 14),
        random([K, J, D], 15),
        random([Q, H, D], 16),
      ];
      expectSame(() => {
        const out = ops().treeAttention(q, k, v, sees);
        return { ...out, ...ops().treeAttentionGrad(q, k, v, sees, out, g) };
      });
    });

    const x = random([4, 6], 17);
    const sees = { position: ints([0, 1]), end: ints([2, 2]) };
    const heads = (n: number, D = 32): Tensor => random([n, 1, D], 18);
    const tables = { cos: tf.ones([2, 2]), sin: tf.ones([2, 2]) };
    const logprob = {
      hidden: x,
      weight: random([5, 6], 19),
      chosen: ints([0, 1, 2, 3]),
      inverseTemperature: tf.ones([4]),
    };
    const misuse: [string, RegExp, () => unknown][] = [
      ['gain', /gain has the shape \[1, 5\]/, () => ops().rmsNorm(x, 0, { gain: tf.ones([1, 5]) })],
      [
        'gain rows',
        /gain_GD must have a number of rows/,
        () => ops().rmsNorm(x, 0, { gain: tf.ones([3, 6]) }),
      ],
      ['eps', /eps must be finite/, () => ops().rmsNorm(x, -1)],
      ['gate', /up has the shape \[6\]/, () => ops().swiglu(x, tf.ones([6]))],
      ['row', /position_T\[0\]/, () => ops().rope(tf.ones([1, 1, 4]), ints([2]), tables)],
      ['coefficient', /beta1 must be in/, () => ops().adamw(x, x, { m: x, v: x }, tf.fill([9], 2))],
      [
        'key',
        /key has the shape \[2, 32\]/,
        () => ops().treeAttention(heads(2), tf.ones([2, 32]), heads(2), sees),
      ],
      [
        'position',
        /position_Q\[1\]/,
        () => ops().treeAttention(heads(2), heads(2), heads(2), { ...sees, position: ints([0, 2]) }),
      ],
      ['chosen', /chosen_T\[3\]/, () => ops().linearLogprob({ ...logprob, chosen: ints([0, 1, 2, 5]) })],
      [
        'temperature',
        /temperature\[0\]/,
        () => ops().linearLogprob({ ...logprob, inverseTemperature: tf.zeros([4]) }),
      ],
      ['bias', /bias_V\[0\]/, () => ops().linearLogprob({ ...logprob, bias: tf.fill([5], Infinity) })],
    ];
    test.each(misuse)('refuses as the CPU does: %s', (_name, pattern, call) =>
      expectSameRefusal(call, pattern),
    );

    test('it is the CUDA source that answers: it has no heads of 8', () => {
      expect(() =>
        withDeviceKernels(() => ops().treeAttention(heads(2, 8), heads(2, 8), heads(2, 8), sees)),
      ).toThrow('dim must be 32, 64 or 128 on CUDA');
    });
  },
);
