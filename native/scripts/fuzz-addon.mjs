// Throws wrong arguments at every function of a built addon, the asynchronous ones while their arrays are written over, detached
// or transferred, and ends with 1 unless each answers with a result or an error that has a code.
//
//   node native/scripts/fuzz-addon.mjs ADDON [ROUNDS] [SEED]
//
// src/fuzz.test.ts runs it on an addon built with ASan and UBSan.
import { createRequire } from 'node:module';

const [path, rounds = '200', seed = '1'] = process.argv.slice(2);
const addon = createRequire(import.meta.url)(path);

let state = Number(seed);
const random = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];

const floats = (n) => Float32Array.from({ length: n }, () => 2 * random() - 1);
const ones = (n) => new Float32Array(n).fill(1);
const half = (n) => Uint16Array.from({ length: n }, () => 0x3f00 + below(256));
const matrix = (n) => (random() < 0.3 ? half : floats)(n);
const ints = (n, f) => Int32Array.from({ length: n }, (_, i) => f(i));

function attention(more = {}) {
  const [T, Q] = [1 + below(300), 1 + below(300)];
  const make = pick([floats, half]);
  const history = {
    start_Q: ints(Q, () => below(9)),
    finish_K: ints(T, () => below(9)),
    firstKey_Q: new Int32Array(Q),
    lastKey_Q: new Int32Array(Q).fill(T),
  };
  return [
    {
      query_QHD: make(Q * 4 * 5),
      key_KJD: make(T * 2 * 5),
      value_KJD: make(T * 2 * 5),
      position_Q: ints(Q, () => below(T + 1) - 1),
      end_K: ints(T, (k) => k + 1 + below(T - k)),
      ...(random() < 0.5 ? history : {}),
      ...(more.backward
        ? { output_QHD: floats(Q * 20), lse_QH: floats(Q * 4), gradOutput_QHD: floats(Q * 20) }
        : {}),
    },
    { heads: 4, keyHeads: 2, dim: 5 },
  ];
}
function logprob(more = {}) {
  const [T, D, V] = [1 + below(120), 1 + below(40), 1 + below(600)];
  const make = pick([floats, half]);
  return [
    {
      hidden_TD: make(T * D),
      weight_VD: make(V * D),
      chosen_T: ints(T, () => below(V)),
      ...(random() < 0.5 ? { bias_V: floats(V), temperature_T: ones(T) } : {}),
      ...(more.backward
        ? { gradLogp_T: floats(T), gradEntropy_T: floats(T), lse_T: floats(T), entropy_T: floats(T) }
        : {}),
    },
    { hiddenSize: D, temperature: 0.9 },
  ];
}
function perToken(names) {
  const T = below(400);
  return Object.fromEntries(names.map((name) => [name, name === 'mask_T' ? ones(T) : floats(T)]));
}
function calls() {
  const C = 1 + below(8);
  const successors = ints(C - 1, (c) => c + 1);
  return {
    callOffset_R1: Int32Array.of(0, C),
    tokenOffset_C1: ints(C + 1, (c) => 7 * c),
    successorOffset_C1: ints(C + 1, (c) => Math.min(c, C - 1)),
    successor_L: successors,
    weight_L: ones(C - 1),
    reward_C: floats(C),
    values_T: floats(7 * C),
  };
}

/** Arguments that an operator takes, by name. */
const makers = {
  treeAttention: () => attention(),
  treeAttentionBackward: () => attention({ backward: true }),
  linearLogprob: () => logprob(),
  linearLogprobBackward: () => logprob({ backward: true }),
  policyLoss: () => [
    perToken(['logp_T', 'logpOld_T', 'logpRollout_T', 'advantages_T', 'mask_T']),
    {
      clipLow: 0.2,
      clipHigh: 0.2,
      truncation: 2,
      normaliser: 3,
      objective: pick(['ppo', 'cispo']),
      kl: pick(['none', 'k3']),
    },
  ],
  valueLoss: () => [
    perToken(['values_T', 'valuesOld_T', 'targets_T', 'mask_T']),
    { normaliser: 3, clip: 0.2 },
  ],
  causalGae: () => [calls(), { gamma: 0.9, lambda: 0.9 }],
  rmsNorm: () => [
    { x_RD: matrix(40), gain_GD: floats(8), ...(random() < 0.5 ? { addend_RD: floats(40) } : {}) },
    { width: 8 },
  ],
  rmsNormBackward: () => [
    {
      [pick(['x_RD', 'unit_RD'])]: matrix(40),
      scale_R: ones(5),
      gradY_RD: floats(40),
      ...(random() < 0.5 ? { gain_GD: floats(8), addend_RD: floats(40) } : {}),
    },
    { width: 8 },
  ],
  rope: () => [
    { x_THD: matrix(24), position_T: Int32Array.of(0, 1, 2), cos_PF: floats(6), sin_PF: floats(6) },
    { heads: 2, dim: 4, frequencies: 2 },
  ],
  swiglu: () => [{ gate_N: floats(30), up_N: floats(30) }, {}],
  swigluBackward: () => [{ gate_N: half(30), up_N: half(30), gradY_N: floats(30) }, {}],
  packTrees: () => [
    {
      tokens_T: ints(30, () => below(3)),
      start_B: ints(6, (b) => 5 * b),
      end_B: ints(6, (b) => 5 * b + below(6)),
      parent_B: ints(6, (b) => below(b + 1) - 1),
      weight_T: new Float32Array(30),
    },
    {},
  ],
  cutForest: () => [
    {
      parent_F: ints(9, (f) => f - 1),
      end_F: new Int32Array(9).fill(9),
      predictor_M: ints(6, () => below(9)),
      ...(random() < 0.5 ? { group_M: ints(6, () => below(3)) } : {}),
    },
    { tokenBudget: 1 + below(12), oversize: pick(['widen', 'alone', 'refuse']) },
  ],
  adamw: () => [
    { param_N: floats(9), grad_N: floats(9), m_N: floats(9), v_N: ones(9) },
    { coefficients: Float32Array.of(0.9, 0.1, 0.99, 0.01, 0.1, 1, 1e-8, 1, 1) },
  ],
};

function garbage(was) {
  const detached = new Float32Array(4);
  structuredClone(null, { transfer: [detached.buffer] });
  const Same = was?.constructor ?? Object;
  const options = [
    undefined,
    null,
    7,
    NaN,
    'x',
    {},
    [],
    () => 1,
    detached,
    new Float64Array(3),
    new DataView(new ArrayBuffer(9)),
  ];
  if (!ArrayBuffer.isView(was)) return pick([...options, -1, 0, 0.5, 2 ** 31, Infinity, 1e300]);
  const changed = Same.from(was);
  if (changed.length)
    changed[below(changed.length)] = pick([NaN, Infinity, -Infinity, -1, 2 ** 31 - 1, -(2 ** 31), 1e38, 300]);
  const shared = new Same(new SharedArrayBuffer(was.byteLength));
  const resizable = new Same(new ArrayBuffer(was.byteLength, { maxByteLength: was.byteLength + 64 }));
  return pick([
    ...options,
    changed,
    changed,
    changed,
    shared,
    resizable,
    was.subarray(1),
    new Same(was.length + 1),
    new Same(0),
  ]);
}

/** One property of the arguments is something else. */
function spoil([inputs, options, ...rest]) {
  const target = random() < 0.8 || Object.keys(options).length === 0 ? inputs : options;
  const name = pick(Object.keys(target));
  const wrong = garbage(target[name]);
  if (random() < 0.1) Object.defineProperty(target, name, { get: () => (meddle(inputs), wrong) });
  else target[name] = wrong;
  return pick([
    [inputs, options, ...rest],
    [inputs, options, pick(['cpu', 'cuda', 5])],
    [inputs, options, ...rest],
    [inputs],
    [pick([null, 3, 'x']), options],
    [],
  ]);
}

/** What a careless caller does to arrays that are in use. */
function meddle(inputs) {
  for (const name of Object.keys(inputs)) {
    const array = Object.getOwnPropertyDescriptor(inputs, name)?.value;
    if (!ArrayBuffer.isView(array) || array instanceof DataView || array.length === 0) continue; // detached ones too
    const what = below(4);
    if (what === 0) array.fill(pick([NaN, -1, 2 ** 31 - 1]));
    if (what === 1 && array.buffer instanceof ArrayBuffer)
      structuredClone(null, { transfer: [array.buffer] });
    if (what === 2 && array.buffer.resizable) array.buffer.resize(0);
  }
}

const counts = { results: 0, errors: 0 };
function judge(name, error) {
  if (error === undefined) return void counts.results++;
  if (typeof error?.code !== 'string' || !error.code.startsWith('NATIVE_E_')) {
    throw new Error(`${name}: an error without a code`, { cause: error });
  }
  counts.errors++;
}

for (let round = 0; round < Number(rounds); round++) {
  const pending = [];
  for (const [name, make] of Object.entries(makers)) {
    if (!(name in addon)) throw new Error(`no ${name}`);
    const args = random() < 0.7 ? spoil(make()) : make();
    try {
      addon[name](...args);
      judge(name, undefined);
    } catch (error) {
      judge(name, error);
    }
    const later = random() < 0.5 ? spoil(make()) : make();
    pending.push(
      addon[`${name}Async`](...later).then(
        () => judge(name, undefined),
        (error) => judge(name, error),
      ),
    );
    if (later[0] && typeof later[0] === 'object') meddle(later[0]);
  }
  if (round % 10 === 0) globalThis.gc?.();
  await Promise.all(pending);
}
process.stdout.write(`${counts.results} results, ${counts.errors} errors with a code\n`);
