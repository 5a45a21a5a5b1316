import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { TreewardError } from '@treeward/base';
import { tensorflowGpuOperatorsPath, tensorflowOperatorsPath } from '@treeward/native';
import {
  loadTensorFlow,
  rawBackend,
  tensorflowDevice,
  type OpAttribute,
  type RawBackend,
  type Tensor,
  type TensorFlow,
} from './load.js';

/**
 * Which keys a query sees; the arrays are those of `treeAttention` in @treeward/native, as int32 tensors. Keys are tokens
 * packed in depth-first order of their trees.
 */
export interface TreeVisibility {
  /** [Q]: where the query stands among the keys; a token's own position, or −1 for an empty context. */
  position: Tensor;
  /** [K]: end of the subtree of the key's node. */
  end: Tensor;
  /** Happens-before, for the history critic: [Q], [K], [Q], [Q]. */
  history?: { start: Tensor; finish: Tensor; firstKey: Tensor; lastKey: Tensor };
}

export interface LinearLogprobTensors {
  /** [T, D] */
  hidden: Tensor;
  /** [V, D] */
  weight: Tensor;
  /** [T], int32: rows of `weight`. */
  chosen: Tensor;
  /** [T]: logits are multiplied by it. */
  inverseTemperature: Tensor;
  /** [V]: added to the products; −Infinity rules a token out. */
  bias?: Tensor;
}

/** Treeward's kernels as TensorFlow operators, on its CPU or its GPU. Results are new tensors of the caller's `tidy`. */
export interface NativeOps {
  /** Threads one operator uses at most, on the CPU. */
  threads: number;
  /**
   * [Q, H, D], [K, J, D], [K, J, D] → [Q, H, D] and the softmax's log-sum [Q, H]; H a multiple of J. No Q × K matrix is stored.
   *
   * @param scale of the products before the softmax, 1 / √D by default
   * @throws TreewardError LEARNER_E_OPERATOR on shapes that do not fit, positions that are no key, subtrees that end before their
   *   key, on a GPU heads of more than 128
   */
  treeAttention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visibility: TreeVisibility,
    scale?: number,
  ): { output: Tensor; lse: Tensor };
  /** Gradients of `treeAttention` from those of its output. @throws as `treeAttention` */
  treeAttentionGrad(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visibility: TreeVisibility,
    forward: { output: Tensor; lse: Tensor },
    gradOutput: Tensor,
    scale?: number,
  ): { gradQuery: Tensor; gradKey: Tensor; gradValue: Tensor };
  /**
   * [m, n] = a b, where either may be given transposed.
   *
   * @throws TreewardError LEARNER_E_OPERATOR on shapes that do not fit
   */
  matMul(a: Tensor, b: Tensor, transposeA?: boolean, transposeB?: boolean): Tensor;
  /**
   * Log-probability of the chosen token and entropy, [T] each, without the T × V logits.
   *
   * @throws TreewardError LEARNER_E_OPERATOR on shapes that do not fit, a chosen token outside the vocabulary, a temperature that is
   *   not finite and positive, NaN or +Infinity in the bias
   */
  linearLogprob(inputs: LinearLogprobTensors): { logp: Tensor; entropy: Tensor; lse: Tensor };
  /** Gradients of `linearLogprob` with respect to hidden states and weights. @throws as `linearLogprob` */
  linearLogprobGrad(
    inputs: LinearLogprobTensors,
    forward: { entropy: Tensor; lse: Tensor },
    gradLogp: Tensor,
    gradEntropy: Tensor,
  ): { gradHidden: Tensor; gradWeight: Tensor };
  /**
   * Over the last axis: s = x + addend, scale = 1 / √(mean(s²) + eps), y = s · scale · gain. `gain` is [G, D]; row r of all the
   * others has gain r mod G. `sum` is s, where there is an addend.
   *
   * @throws TreewardError LEARNER_E_OPERATOR on shapes that do not fit
   */
  rmsNorm(
    x: Tensor,
    eps: number,
    more?: { addend?: Tensor; gain?: Tensor },
  ): { y: Tensor; scale: Tensor; sum?: Tensor };
  /**
   * Gradient with respect to x (and the addend), plus `addend`, and with respect to the gain, where there is one.
   *
   * @param kept what was normalised, or instead `unit`, that times the scale: y where there is no gain
   * @throws as `rmsNorm`
   */
  rmsNormGrad(
    kept: { sum: Tensor } | { unit: Tensor },
    scale: Tensor,
    gradY: Tensor,
    more?: { addend?: Tensor; gain?: Tensor },
  ): { gradX: Tensor; gradGain?: Tensor };
  /**
   * Turns the pairs (i, i + F) of each head as transformers' "rotate half"; [T, H, D], [T] int32, tables [P, F] of cosines and
   * sines (`ropeTables` of @treeward/native). `inverse` turns back, which is the gradient.
   *
   * @throws TreewardError LEARNER_E_OPERATOR on shapes that do not fit, a position that is no row of the tables
   */
  rope(x: Tensor, position: Tensor, tables: { cos: Tensor; sin: Tensor }, inverse?: boolean): Tensor;
  /** silu(gate) · up. @throws TreewardError LEARNER_E_OPERATOR on shapes that differ */
  swiglu(gate: Tensor, up: Tensor): Tensor;
  /** Needs gate and up only. @throws as `swiglu` */
  swigluGrad(gate: Tensor, up: Tensor, gradY: Tensor): { gradGate: Tensor; gradUp: Tensor };
  /**
   * One AdamW step into new tensors, in one pass.
   *
   * @param coefficients `adamwCoefficients` of @treeward/native as a tensor, one for all arrays of a step
   * @throws TreewardError LEARNER_E_OPERATOR on shapes that differ, a coefficient out of range
   */
  adamw(
    param: Tensor,
    grad: Tensor,
    moments: { m: Tensor; v: Tensor },
    coefficients: Tensor,
  ): { param: Tensor; m: Tensor; v: Tensor };
}

export type NativeOpsLoad = { available: true; ops: NativeOps } | { available: false; reason: string };

let loaded: NativeOpsLoad | undefined;

/**
 * Registers the operators with the TensorFlow of this process, on the first call; where that has a GPU, their kernels for it too.
 * Where they are not built, or were built for another TensorFlow, `reason` says so and the caller composes TensorFlow's own
 * operators. On the CPU an operator takes as many threads as TREEWARD_NATIVE_THREADS says, and as TensorFlow's own operators
 * otherwise. `TREEWARD_NATIVE_TENSORFLOW_PATH` and `TREEWARD_NATIVE_TENSORFLOW_GPU_PATH` name other files.
 *
 * @throws TreewardError LEARNER_E_TENSORFLOW when TensorFlow itself does not load
 */
export function loadNativeOps(): NativeOpsLoad {
  loaded ??= load();
  return loaded;
}

/** The operators where this process should use them: not those of the CPU on a GPU, which would pull every tensor back. */
export function usableNativeOps(): NativeOps | null {
  const native = loadNativeOps();
  return native.available ? native.ops : null;
}

function load(): NativeOpsLoad {
  // First, so that the operators find its library in the process.
  const tf = loadTensorFlow();
  const gpu = tensorflowDevice().device === 'gpu';
  process.env['TREEWARD_NATIVE_THREADS'] ??= process.env['TF_NUM_INTRAOP_THREADS'] ?? '1';
  try {
    const { threads } = register(tensorflowOperatorsPath(), 'build-tensorflow.sh');
    // Joins the operators that the first file defines.
    if (gpu) register(tensorflowGpuOperatorsPath(), 'build-tensorflow-gpu.sh');
    return { available: true, ops: operators(tf, threads, gpu) };
  } catch (error) {
    const reason = (error as Error).message;
    if (gpu) process.stderr.write(`learner: ${reason}; the GPU computes with TensorFlow's own operators\n`);
    return { available: false, reason };
  }
}

function register(path: string, script: string): { threads: number } {
  if (!existsSync(path)) throw new Error(`${path} is not built: native/scripts/${script}`);
  try {
    return createRequire(import.meta.url)(path) as { threads: number };
  } catch (cause) {
    throw new Error(`${path} does not load: ${(cause as Error).message}`, { cause });
  }
}

/** Sizes of an attention head that there are CUDA kernels for. */
const GPU_HEADS = [32, 64, 128];

function operators(tf: TensorFlow, threads: number, gpu: boolean): NativeOps {
  const backend: RawBackend = rawBackend(tf);
  const attribute = (
    name: string,
    type: 'TF_ATTR_FLOAT' | 'TF_ATTR_INT' | 'TF_ATTR_BOOL' | 'TF_ATTR_TYPE',
    value: number | boolean,
  ): OpAttribute => ({
    name,
    type: backend.binding[type] as number,
    value,
  });
  const execute = (
    name: string,
    attributes: readonly OpAttribute[],
    inputs: readonly Tensor[],
    count: number,
  ): Tensor[] => {
    try {
      return backend.executeMultipleOutputs(name, attributes, inputs, count);
    } catch (cause) {
      // "Invalid TF_Status: 3\nMessage: key has the shape …"
      const message = (cause as Error).message.replace(/^Invalid TF_Status: \d+\s+Message: /, '');
      throw new TreewardError('LEARNER_E_OPERATOR', `${name.replace(/^Treeward/, '')}: ${message}`, {
        cause,
      });
    }
  };
  const run: typeof execute = (name, ...rest) => execute(`Treeward${name}`, ...rest);
  const attention = (
    name: string,
    operands: readonly Tensor[],
    { position, end, history }: TreeVisibility,
    scale: number,
    count: number,
  ): Tensor[] => {
    const past = history ? [history.start, history.finish, history.firstKey, history.lastKey] : [];
    const attributes = [
      attribute('scale', 'TF_ATTR_FLOAT', scale),
      attribute('N', 'TF_ATTR_INT', past.length),
    ];
    const size = operands[0]!.shape.at(-1) ?? 0;
    const wide = gpu ? (GPU_HEADS.find((head) => head >= size) ?? size) : size;
    if (wide === size) return run(name, attributes, [...operands, position, end, ...past], count);
    // Zeros behind a head's values change no product, and come out as zeros.
    return tf.tidy(() => {
      const padded = operands.map((t) =>
        t.rank === 3
          ? tf.pad(t, [
              [0, 0],
              [0, 0],
              [0, wide - size],
            ])
          : t,
      );
      const results = run(name, attributes, [...padded, position, end, ...past], count);
      return results.map((t) => (t.rank === 3 ? tf.slice(t, [0, 0, 0], [-1, -1, size]) : t));
    });
  };
  const optionals = (given: { addend?: Tensor; gain?: Tensor }): [OpAttribute[], Tensor[]] => [
    [attribute('A', 'TF_ATTR_INT', given.addend ? 1 : 0), attribute('G', 'TF_ATTR_INT', given.gain ? 1 : 0)],
    [given.addend, given.gain].filter((tensor) => tensor !== undefined),
  ];
  const scaleOf = (query: Tensor): number => 1 / Math.sqrt(query.shape.at(-1) ?? 1);
  const logprob = (
    name: string,
    { hidden, weight, chosen, inverseTemperature, bias }: LinearLogprobTensors,
    more: readonly Tensor[],
    count: number,
  ): Tensor[] => {
    const biases = bias ? [bias] : [];
    const inputs = [hidden, weight, chosen, inverseTemperature, ...more, ...biases];
    return run(name, [attribute('N', 'TF_ATTR_INT', biases.length)], inputs, count);
  };
  // On a GPU TensorFlow's own, which is cuBLAS.
  const product = gpu ? 'MatMul' : 'TreewardMatMul';
  const type = gpu ? [attribute('T', 'TF_ATTR_TYPE', backend.binding['TF_FLOAT'] as number)] : [];
  const products = [0, 1, 2, 3].map((bits) => [
    ...type,
    attribute('transpose_a', 'TF_ATTR_BOOL', (bits & 1) !== 0),
    attribute('transpose_b', 'TF_ATTR_BOOL', (bits & 2) !== 0),
  ]);
  return {
    threads,
    matMul: (a, b, transposeA = false, transposeB = false) =>
      execute(product, products[(transposeA ? 1 : 0) + (transposeB ? 2 : 0)]!, [a, b], 1)[0]!,
    treeAttention(query, key, value, visibility, scale = scaleOf(query)) {
      const out = attention('TreeAttention', [query, key, value], visibility, scale, 2);
      const [output, lse] = out as [Tensor, Tensor];
      return { output, lse };
    },
    treeAttentionGrad(query, key, value, visibility, forward, gradOutput, scale = scaleOf(query)) {
      const operands = [query, key, value, forward.output, forward.lse, gradOutput];
      const out = attention('TreeAttentionGrad', operands, visibility, scale, 3);
      const [gradQuery, gradKey, gradValue] = out as [Tensor, Tensor, Tensor];
      return { gradQuery, gradKey, gradValue };
    },
    linearLogprob(inputs) {
      const [logp, entropy, lse] = logprob('LinearLogprob', inputs, [], 3) as [Tensor, Tensor, Tensor];
      return { logp, entropy, lse };
    },
    linearLogprobGrad(inputs, { lse, entropy }, gradLogp, gradEntropy) {
      const out = logprob('LinearLogprobGrad', inputs, [lse, entropy, gradLogp, gradEntropy], 2);
      const [gradHidden, gradWeight] = out as [Tensor, Tensor];
      return { gradHidden, gradWeight };
    },
    rmsNorm(x, eps, more = {}) {
      const [counts, optional] = optionals(more);
      const attributes = [attribute('eps', 'TF_ATTR_FLOAT', eps), ...counts];
      const [y, scale, sum] = run('RmsNorm', attributes, [x, ...optional], 3) as [Tensor, Tensor, Tensor];
      if (more.addend) return { y, scale, sum };
      sum.dispose();
      return { y, scale };
    },
    rmsNormGrad(kept, scale, gradY, more = {}) {
      const [counts, optional] = optionals(more);
      const normalised = 'unit' in kept;
      const attributes = [attribute('normalised', 'TF_ATTR_BOOL', normalised), ...counts];
      const inputs = [normalised ? kept.unit : kept.sum, scale, gradY, ...optional];
      const [gradX, gradGain] = run('RmsNormGrad', attributes, inputs, 2) as [Tensor, Tensor];
      if (more.gain) return { gradX, gradGain };
      gradGain.dispose();
      return { gradX };
    },
    rope(x, position, { cos, sin }, inverse = false) {
      const attributes = [
        attribute('inverse', 'TF_ATTR_BOOL', inverse),
        attribute('interleaved', 'TF_ATTR_BOOL', false),
      ];
      return run('Rope', attributes, [x, position, cos, sin], 1)[0]!;
    },
    swiglu: (gate, up) => run('Swiglu', [], [gate, up], 1)[0]!,
    swigluGrad(gate, up, gradY) {
      const [gradGate, gradUp] = run('SwigluGrad', [], [gate, up, gradY], 2) as [Tensor, Tensor];
      return { gradGate, gradUp };
    },
    adamw(param, grad, { m, v }, coefficients) {
      const out = run('Adamw', [], [param, grad, m, v, coefficients], 3) as [Tensor, Tensor, Tensor];
      return { param: out[0], m: out[1], v: out[2] };
    },
  };
}
