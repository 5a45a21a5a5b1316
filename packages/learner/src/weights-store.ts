import type { NamedTensor } from '@treeward/base';
import type { ModelConfig } from './model/config.js';
import { tidy } from './model/decoder.js';
import { fuse, unfuse, type FusedGrads, type FusedWeights, type Params } from './model/fused.js';
import type { ParamArrays } from './model/params.js';
import type { Ops } from './tf/ops.js';

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

/** The fused form of the weights, for as long as `use` runs. */
export async function withFused<R>(
  ops: Ops,
  config: ModelConfig,
  params: Params,
  use: (fused: FusedWeights) => Promise<R>,
): Promise<R> {
  const fused = tidy(ops.tf, () => fuse(ops, config, params));
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
  readonly #config: ModelConfig;

  constructor(ops: Ops, config: ModelConfig) {
    this.#ops = ops;
    this.#config = config;
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

  /** Gradients by parameter; the caller's. */
  finish(params: Params): Params {
    const sum = this.#sum;
    if (!sum) return new Map();
    const byName = tidy(this.#ops.tf, () => Object.fromEntries(unfuse(this.#ops, this.#config, params, sum)));
    this.dispose();
    return new Map(Object.entries(byName));
  }

  dispose(): void {
    if (this.#sum) this.#ops.tf.dispose(this.#sum as never);
    this.#sum = null;
  }
}

function addTree(ops: Ops, a: FusedGrads, b: FusedGrads): FusedGrads {
  return {
    embed: ops.add(a.embed, b.embed),
    head: ops.add(a.head, b.head),
    layers: a.layers.map((layer, l) => {
      const other = b.layers[l]!;
      return {
        qkv: ops.add(layer.qkv, other.qkv),
        qkGain: ops.add(layer.qkGain, other.qkGain),
        o: ops.add(layer.o, other.o),
        gate: ops.add(layer.gate, other.gate),
        up: ops.add(layer.up, other.up),
        down: ops.add(layer.down, other.down),
      };
    }),
  };
}
