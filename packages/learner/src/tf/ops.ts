import { rawBackend, type OpAttribute, type RawBackend, type Tensor, type TensorFlow } from './load.js';
import { usableNativeOps, type NativeOps } from './native-ops.js';

/**
 * TensorFlow operators called by name, without tfjs's tape, shape checks or broadcasting helpers. The decoder's forward
 * and backward passes are written in these, so that each line is one kernel launch and nothing else happens.
 */
export class Ops {
  readonly tf: TensorFlow;
  readonly #backend: RawBackend;
  readonly #T: readonly OpAttribute[];
  readonly #matMul: readonly (readonly OpAttribute[])[];
  /** Takes a MatMul's place where Treeward's operators are. */
  readonly #product: NativeOps['matMul'] | null;
  readonly #batchMatMul: readonly (readonly OpAttribute[])[];
  readonly #reduce: readonly (readonly OpAttribute[])[];
  readonly #gather: readonly OpAttribute[];
  readonly #transpose: readonly OpAttribute[];
  readonly #reshape: readonly OpAttribute[];
  readonly #segmentSum: readonly OpAttribute[];
  /** Shapes, permutations and axes are inputs in TensorFlow; they are made once and kept. */
  readonly #ints = new Map<string, Tensor>();
  readonly #scalars = new Map<number, Tensor>();

  constructor(tf: TensorFlow) {
    this.tf = tf;
    const backend = rawBackend(tf);
    this.#backend = backend;
    this.#product = usableNativeOps()?.matMul ?? null;
    const code = (name: string): number => backend.binding[name] as number;
    const type = (name: string, dtype = 'TF_FLOAT'): OpAttribute => ({
      name,
      type: code('TF_ATTR_TYPE'),
      value: code(dtype),
    });
    const bool = (name: string, value: boolean): OpAttribute => ({ name, type: code('TF_ATTR_BOOL'), value });
    const int = (name: string, value: number): OpAttribute => ({ name, type: code('TF_ATTR_INT'), value });
    const flags = [0, 1, 2, 3].map((bits) => [(bits & 1) !== 0, (bits & 2) !== 0] as const);
    this.#T = [type('T')];
    this.#matMul = flags.map(([a, b]) => [type('T'), bool('transpose_a', a), bool('transpose_b', b)]);
    this.#batchMatMul = flags.map(([a, b]) => [type('T'), bool('adj_x', a), bool('adj_y', b)]);
    this.#reduce = [false, true].map((keep) => [
      bool('keep_dims', keep),
      type('T'),
      type('Tidx', 'TF_INT32'),
    ]);
    this.#gather = [
      type('Tparams'),
      type('Tindices', 'TF_INT32'),
      type('Taxis', 'TF_INT32'),
      int('batch_dims', 0),
    ];
    this.#transpose = [type('T'), type('Tperm', 'TF_INT32')];
    this.#reshape = [type('T'), type('Tshape', 'TF_INT32')];
    this.#segmentSum = [type('T'), type('Tindices', 'TF_INT32'), type('Tnumsegments', 'TF_INT32')];
  }

  #one(name: string, ...inputs: Tensor[]): Tensor {
    return this.#backend.executeSingleOutput(name, this.#T, inputs);
  }

  #int(name: string, value: number): OpAttribute {
    return { name, type: this.#backend.binding['TF_ATTR_INT'] as number, value };
  }

  /** An attribute saying that an index input is int32. */
  #index(name: string): OpAttribute {
    const { binding } = this.#backend;
    return { name, type: binding['TF_ATTR_TYPE'] as number, value: binding['TF_INT32'] as number };
  }

  /** A kept int32 vector (or scalar, for a bare number). */
  ints(values: readonly number[] | number): Tensor {
    const key = JSON.stringify(values);
    let tensor = this.#ints.get(key);
    if (!tensor) {
      tensor =
        typeof values === 'number'
          ? this.tf.scalar(values, 'int32')
          : this.tf.tensor1d(Int32Array.from(values), 'int32');
      this.tf.keep(tensor);
      this.#ints.set(key, tensor);
    }
    return tensor;
  }

  /** A kept float scalar. For constants of the code; values that change go through `tf.scalar`. */
  constant(value: number): Tensor {
    let tensor = this.#scalars.get(value);
    if (!tensor) {
      tensor = this.tf.keep(this.tf.scalar(value));
      this.#scalars.set(value, tensor);
    }
    return tensor;
  }

  /** Forgets the kept shapes: they differ from batch to batch. Call outside any pass. */
  trim(): void {
    for (const tensor of this.#ints.values()) tensor.dispose();
    this.#ints.clear();
  }

  /** The same buffer under a handle of its own. */
  alias = (a: Tensor): Tensor => this.#one('Identity', a);
  add = (a: Tensor, b: Tensor): Tensor => this.#one('AddV2', a, b);
  sub = (a: Tensor, b: Tensor): Tensor => this.#one('Sub', a, b);
  mul = (a: Tensor, b: Tensor): Tensor => this.#one('Mul', a, b);
  div = (a: Tensor, b: Tensor): Tensor => this.#one('RealDiv', a, b);
  maximum = (a: Tensor, b: Tensor): Tensor => this.#one('Maximum', a, b);
  square = (a: Tensor): Tensor => this.#one('Square', a);
  sqrt = (a: Tensor): Tensor => this.#one('Sqrt', a);
  rsqrt = (a: Tensor): Tensor => this.#one('Rsqrt', a);
  log = (a: Tensor): Tensor => this.#one('Log', a);
  exp = (a: Tensor): Tensor => this.#one('Exp', a);
  sigmoid = (a: Tensor): Tensor => this.#one('Sigmoid', a);
  /** dy · y · (1 − y), for y = sigmoid(x). */
  sigmoidGrad = (y: Tensor, dy: Tensor): Tensor => this.#one('SigmoidGrad', y, dy);
  softmax = (a: Tensor): Tensor => this.#one('Softmax', a);
  /** Σ x² / 2. */
  l2Loss = (a: Tensor): Tensor => this.#one('L2Loss', a);

  matMul(a: Tensor, b: Tensor, transposeA = false, transposeB = false): Tensor {
    if (this.#product) return this.#product(a, b, transposeA, transposeB);
    const attributes = this.#matMul[(transposeA ? 1 : 0) + (transposeB ? 2 : 0)]!;
    return this.#backend.executeSingleOutput('MatMul', attributes, [a, b]);
  }

  batchMatMul(a: Tensor, b: Tensor, transposeA = false, transposeB = false): Tensor {
    const attributes = this.#batchMatMul[(transposeA ? 1 : 0) + (transposeB ? 2 : 0)]!;
    return this.#backend.executeSingleOutput('BatchMatMulV2', attributes, [a, b]);
  }

  mean(x: Tensor, axis: number, keep = true): Tensor {
    return this.#backend.executeSingleOutput('Mean', this.#reduce[keep ? 1 : 0]!, [x, this.ints([axis])]);
  }

  sum(x: Tensor, axes: readonly number[], keep = false): Tensor {
    return this.#backend.executeSingleOutput('Sum', this.#reduce[keep ? 1 : 0]!, [x, this.ints(axes)]);
  }

  reshape(x: Tensor, shape: readonly number[]): Tensor {
    return this.#backend.executeSingleOutput('Reshape', this.#reshape, [x, this.ints(shape)]);
  }

  transpose(x: Tensor, permutation: readonly number[]): Tensor {
    return this.#backend.executeSingleOutput('Transpose', this.#transpose, [x, this.ints(permutation)]);
  }

  concat(parts: readonly Tensor[], axis: number): Tensor {
    return this.#backend.executeSingleOutput(
      'ConcatV2',
      [this.#int('N', parts.length), ...this.#T, this.#index('Tidx')],
      [...parts, this.ints(axis)],
    );
  }

  /** Parts of the given sizes along an axis. */
  split(x: Tensor, sizes: readonly number[], axis: number): Tensor[] {
    return this.#backend.executeMultipleOutputs(
      'SplitV',
      [this.#int('num_split', sizes.length), ...this.#T, this.#index('Tlen')],
      [x, this.ints(sizes), this.ints(axis)],
      sizes.length,
    );
  }

  slice(x: Tensor, begin: readonly number[], size: readonly number[]): Tensor {
    return this.#backend.executeSingleOutput(
      'Slice',
      [...this.#T, this.#index('Index')],
      [x, this.ints(begin), this.ints(size)],
    );
  }

  pack(parts: readonly Tensor[]): Tensor {
    return this.#backend.executeSingleOutput(
      'Pack',
      [this.#int('N', parts.length), ...this.#T, this.#int('axis', 0)],
      parts,
    );
  }

  unpack(x: Tensor): Tensor[] {
    const count = x.shape[0]!;
    return this.#backend.executeMultipleOutputs(
      'Unpack',
      [this.#int('num', count), ...this.#T, this.#int('axis', 0)],
      [x],
      count,
    );
  }

  /** Rows (along axis 0) by index. */
  gather(x: Tensor, indices: Tensor): Tensor {
    return this.#backend.executeSingleOutput('GatherV2', this.#gather, [x, indices, this.ints(0)]);
  }

  /** The transpose of `gather`: rows summed into `count` slots; unused slots are 0. */
  segmentSum(x: Tensor, indices: Tensor, count: number): Tensor {
    return this.#backend.executeSingleOutput('UnsortedSegmentSum', this.#segmentSum, [
      x,
      indices,
      this.ints(count),
    ]);
  }
}
