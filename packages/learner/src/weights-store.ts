import type { NamedTensor } from '@treeward/base';
import { tidy } from './model/decoder.js';
import { fuse, unfuse, type FusedGrads, type FusedWeights, type Params } from './model/fused.js';
import { loraGrads, mergeLora } from './model/lora.js';
import type { ParamArrays } from './model/params.js';
import type { Ops } from './tf/ops.js';
import type { Model } from './update/state.js';

type Shape = Pick<Model, 'config' | 'lora'>;

export const toTensors = (ops: Ops, arrays: ReadonlyMap<string, NamedTensor>): Params =>
  new Map(
    [...arrays].map(([name, { shape, data }]) => [
      name,
      ops.tf.tensor(data as Float32Array, [...shape], 'float32'),
    ]),
  );

export const toArrays = (params: Params): ParamArrays =>
  new Map(
    [...params].map(([name, tensor]) => [
      name,
      { shape: [...tensor.shape], data: tensor.dataSync() as Float32Array },
    ]),
  );

export const disposeAll = (params: Iterable<{ dispose(): void }>): void => {
  for (const tensor of params) tensor.dispose();
};

/** The fused form of the weights (adapters merged), for as long as `use` runs. */
export async function withFused<R>(
  ops: Ops,
  { config, lora }: Shape,
  params: Params,
  use: (fused: FusedWeights) => Promise<R>,
): Promise<R> {
  const fused = tidy(ops.tf, () => fuse(ops, config, lora ? mergeLora(ops, params, lora) : params));
  try {
    return await use(fused);
  } finally {
    ops.tf.dispose(fused as never);
  }
}

/** Adds gradients over micro-batches; owns what it is given. */
export class GradientSum {
  #sum: FusedGrads | null = null;
  readonly #ops: Ops;
  readonly #shape: Shape;

  constructor(ops: Ops, shape: Shape) {
    this.#ops = ops;
    this.#shape = shape;
  }

  add(grads: FusedGrads): void {
    const old = this.#sum;
    this.#sum = old ? addTree(this.#ops, old, grads) : grads;
    if (old) {
      this.#ops.tf.dispose(old as never);
      this.#ops.tf.dispose(grads as never);
    }
  }

  get empty(): boolean {
    return this.#sum === null;
  }

  /** Gradients by trained parameter; the caller's. */
  finish(params: Params): Params {
    const sum = this.#sum;
    if (!sum) return new Map();
    const { config, lora } = this.#shape;
    const ops = this.#ops;
    const byName = tidy(ops.tf, () => {
      if (!lora) return Object.fromEntries(unfuse(ops, config, params, sum));
      const merged = unfuse(ops, config, mergeLora(ops, params, lora), sum);
      return Object.fromEntries(loraGrads(ops, params, merged, lora));
    });
    this.dispose();
    return new Map(Object.entries(byName));
  }

  dispose(): void {
    if (this.#sum) this.#ops.tf.dispose(this.#sum as never);
    this.#sum = null;
  }
}

/** Sums, member by member, two structures of tensors of the same form. */
function addTree<S extends object>(ops: Ops, a: S, b: S): S {
  const sum = Array.isArray(a) ? [] : {};
  for (const key of Object.keys(a) as (keyof S)[]) {
    const [x, y] = [a[key], b[key]] as [object, object];
    Object.assign(sum, {
      [key]: x instanceof ops.tf.Tensor ? ops.add(x, y as typeof x) : addTree(ops, x, y),
    });
  }
  return sum as S;
}
