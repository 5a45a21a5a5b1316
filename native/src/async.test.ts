// The asynchronous twins: one mechanism (native/node/call.cc) for all operators.
import { existsSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import * as native from './index.js';
import { candidatePaths } from './load-binding.js';

const floats = (n: number, seed = 1): Float32Array =>
  Float32Array.from({ length: n }, (_, i) => Math.sin(seed + i * 12.9898));
const ones = (n: number): Float32Array => new Float32Array(n).fill(1);

const attention = (T: number): native.TreeAttentionInput => ({
  query_QHD: floats(T * 2 * 32, 1),
  key_KJD: floats(T * 32, 2),
  value_KJD: floats(T * 32, 3),
  position_Q: Int32Array.from({ length: T }, (_, t) => t),
  end_K: new Int32Array(T).fill(T),
});
const attentionOptions = { heads: 2, keyHeads: 1, dim: 32 };
const logprob = (T: number): native.LinearLogprobInput => ({
  hidden_TD: floats(T * 16, 4),
  weight_VD: floats(100 * 16, 5),
  chosen_T: Int32Array.from({ length: T }, (_, t) => (t * 7) % 100),
  temperature_T: ones(T),
});
const policy = { clipLow: 0.2, clipHigh: 0.28, truncation: 2, normaliser: 10 };
const tokens = {
  logp_T: floats(50, 6),
  logpOld_T: floats(50, 7),
  logpRollout_T: floats(50, 8),
  advantages_T: floats(50, 9),
  mask_T: ones(50),
};
const values = {
  values_T: floats(50, 1),
  valuesOld_T: floats(50, 2),
  targets_T: floats(50, 3),
  mask_T: ones(50),
};
const calls = {
  callOffset_R1: Int32Array.of(0, 2),
  tokenOffset_C1: Int32Array.of(0, 20, 50),
  successorOffset_C1: Int32Array.of(0, 1, 1),
  successor_L: Int32Array.of(1),
  weight_L: ones(1),
  reward_C: Float32Array.of(0, 1),
  values_T: floats(50, 4),
};
const rotation = {
  x_THD: floats(3 * 2 * 4),
  position_T: Int32Array.of(0, 1, 2),
  ...native.ropeTables(3, [1, 0.1]),
};
const rotationOptions = { heads: 2, dim: 4, frequencies: 2 };
const forestRows: native.PackTreesInput = {
  tokens_T: Int32Array.of(1, 2, 2, 3),
  start_B: Int32Array.of(0, 1, 2),
  end_B: Int32Array.of(1, 2, 4),
  parent_B: Int32Array.of(-1, 0, 0),
};
const moments = (): native.AdamwArrays => ({
  param_N: floats(40, 1),
  grad_N: floats(40, 2),
  m_N: floats(40, 3),
  v_N: ones(40),
});
const steps = { lr: 0.1, betas: [0.9, 0.99] as const, eps: 1e-8, weightDecay: 0.1, step: 3 };

/** Each operator and its twin on the same arguments, made anew for each call. */
const pairs: [string, () => unknown, () => Promise<unknown>][] = [
  pair('treeAttention', () => [attention(70), attentionOptions] as const),
  pair('treeAttentionBackward', () => {
    const forward = native.treeAttention(attention(70), attentionOptions);
    return [{ ...attention(70), ...forward, gradOutput_QHD: floats(70 * 64) }, attentionOptions] as const;
  }),
  pair('linearLogprob', () => [logprob(30), { hiddenSize: 16 }] as const),
  pair('linearLogprobBackward', () => {
    const forward = native.linearLogprob(logprob(30), { hiddenSize: 16 });
    const gradients = { gradLogp_T: floats(30), gradEntropy_T: floats(30, 2) };
    return [{ ...logprob(30), ...forward, ...gradients }, { hiddenSize: 16 }] as const;
  }),
  pair('policyLoss', () => [tokens, policy] as const),
  pair('valueLoss', () => [values, { normaliser: 10 }] as const),
  pair('causalGae', () => [calls, { gamma: 0.9, lambda: 0.8 }] as const),
  pair('rmsNorm', () => [{ x_RD: floats(40), gain_GD: floats(8) }, { width: 8 }] as const),
  pair('rope', () => [rotation, rotationOptions] as const),
  pair(
    'rmsNormBackward',
    () => [{ x_RD: floats(40), scale_R: ones(5), gradY_RD: floats(40, 2) }, { width: 8 }] as const,
  ),
  pair('packTrees', () => [forestRows] as const),
  pair(
    'cutForest',
    () =>
      [{ ...native.packTrees(forestRows), predictor_M: Int32Array.of(2, 0) }, { tokenBudget: 2 }] as const,
  ),
  pair('ropeBackward', () => [rotation, rotationOptions] as const),
  pair('swiglu', () => [{ gate_N: floats(40), up_N: floats(40, 2) }] as const),
  pair(
    'swigluBackward',
    () => [{ gate_N: floats(40), up_N: floats(40, 2), gradY_N: floats(40, 3) }] as const,
  ),
];

function pair(name: string, make: () => readonly unknown[]): [string, () => unknown, () => Promise<unknown>] {
  type Call = (...args: readonly unknown[]) => unknown;
  const functions = native as unknown as Record<string, Call>;
  return [
    name,
    () => functions[name]!(...make()),
    () => functions[`${name}Async`]!(...make()) as Promise<unknown>,
  ];
}

const codeOf = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'no error',
    (error: unknown) => (error as native.NativeError).code,
  );

test.each(pairs)('%s gives the same bits', async (_name, now, later) => {
  const promise = later();
  expect(promise).toBeInstanceOf(Promise);
  expect(await promise).toEqual(now());
});

test('adamw writes over its arrays', async () => {
  const [got, want] = [moments(), moments()];
  await native.adamwAsync(got, steps);
  native.adamw(want, steps);
  expect(got).toEqual(want);
  expect(got.param_N).not.toEqual(moments().param_N);
});

describe('errors reject, none is thrown', () => {
  const bad = attention(4);
  const cases: [string, string, Promise<unknown>][] = [
    ['type', 'NATIVE_E_TYPE', native.treeAttentionAsync(undefined as never, attentionOptions)],
    ['length', 'NATIVE_E_LENGTH', native.treeAttentionAsync({ ...bad, key_KJD: ones(3) }, attentionOptions)],
    ['option', 'NATIVE_E_OPTION', native.treeAttentionAsync(bad, { ...attentionOptions, scale: NaN })],
    [
      'value',
      'NATIVE_E_VALUE',
      native.treeAttentionAsync({ ...bad, position_Q: Int32Array.of(0, 9, 2, 3) }, attentionOptions),
    ],
    [
      'cycle',
      'NATIVE_E_CYCLE',
      native.causalGaeAsync({ ...calls, successor_L: Int32Array.of(0) }, { gamma: 1, lambda: 1 }),
    ],
  ];
  const codes = cases.map(([, , promise]) => codeOf(promise));
  test.each(cases.map(([name, code], i) => [name, code, codes[i]!] as const))(
    '%s',
    async (_name, code, got) => {
      expect(await got).toBe(code);
    },
  );
});

describe('what JavaScript does meanwhile', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const want = native.treeAttention(attention(600), attentionOptions);

  test('buffers are transferred away and collected', async () => {
    const inputs = Array.from({ length: 4 }, () => attention(600));
    const promises = inputs.map((input) => native.treeAttentionAsync(input, attentionOptions));
    for (const input of inputs) {
      const buffers = Object.values(input as unknown as Record<string, Float32Array>).map(
        ({ buffer }) => buffer as ArrayBuffer,
      );
      structuredClone(null, { transfer: buffers });
      expect(input.query_QHD).toHaveLength(0);
    }
    collect();
    const noise = Array.from({ length: 50 }, () => new Float32Array(1 << 16).fill(NaN));
    for (const promise of promises) expect(await promise).toEqual(want);
    expect(noise).toHaveLength(50);
  });

  test('integers are written over: indices that were checked are the ones that are used', async () => {
    const inputs = Array.from({ length: 3 }, () => ({
      ...calls,
      successor_L: Int32Array.of(1),
      tokenOffset_C1: Int32Array.of(0, 20, 50),
    }));
    const promises = inputs.map((input) => native.causalGaeAsync(input, { gamma: 0.9, lambda: 0.8 }));
    for (const input of inputs) {
      input.successor_L.fill(2 ** 30);
      input.tokenOffset_C1.fill(2 ** 30);
    }
    for (const promise of promises)
      expect(await promise).toEqual(native.causalGae(calls, { gamma: 0.9, lambda: 0.8 }));
  });

  test('a getter calls operators itself', async () => {
    const input = attention(600);
    const nested: unknown[] = [];
    Object.defineProperty(input, 'value_KJD', {
      get: () => {
        nested.push(
          native.swiglu({ gate_N: ones(1), up_N: ones(1) }),
          native.treeAttentionAsync(attention(600), attentionOptions),
        );
        return attention(600).value_KJD;
      },
    });
    expect(await native.treeAttentionAsync(input, attentionOptions)).toEqual(want);
    expect(nested[0]).toBeInstanceOf(Float32Array);
    expect(await nested[1]).toEqual(want);
  });

  test('views of resizable buffers are refused', async () => {
    const Resizable = ArrayBuffer as unknown as new (size: number, options: object) => ArrayBuffer;
    const key_KJD = new Float32Array(new Resizable(4 * 4 * 32, { maxByteLength: 4096 }));
    expect(await codeOf(native.treeAttentionAsync({ ...attention(4), key_KJD }, attentionOptions))).toBe(
      'NATIVE_E_TYPE',
    );
  });

  test('shared memory is taken', async () => {
    const shared = new Float32Array(new SharedArrayBuffer(4 * 40));
    expect(await native.swigluAsync({ gate_N: shared, up_N: shared })).toEqual(new Float32Array(40));
  });

  test('this thread goes on with other work', async () => {
    let [turns, done] = [0, false];
    const input = attention(3000);
    const promise = native.treeAttentionAsync(input, attentionOptions).then(() => (done = true));
    while (!done) {
      await new Promise((resolve) => setImmediate(resolve));
      turns++;
    }
    await promise;
    expect(turns).toBeGreaterThan(1);
  });
});

test('a thread that ends with calls under way takes nothing with it', async () => {
  const script = `
    const { parentPort } = require('node:worker_threads');
    const binding = require(${JSON.stringify(candidatePaths().find((path) => existsSync(path)))});
    const n = 1500, floats = (n) => new Float32Array(n).fill(1);
    for (let i = 0; i < 3; i++) {
      binding.treeAttentionAsync({
        query_QHD: floats(n * 32), key_KJD: floats(n * 32), value_KJD: floats(n * 32),
        position_Q: new Int32Array(n), end_K: new Int32Array(n).fill(n),
      }, { heads: 1, keyHeads: 1, dim: 32 });
    }
    parentPort.postMessage('started');
    setInterval(() => {}, 1000);`;
  for (let i = 0; i < 3; i++) {
    const worker = new Worker(script, { eval: true });
    await new Promise((resolve) => worker.once('message', resolve));
    expect(await worker.terminate()).toBe(1);
  }
  expect(await native.swigluAsync({ gate_N: ones(1), up_N: ones(1) })).toHaveLength(1);
});
