import type { LoraOptions } from '../model/lora.js';
import type { ModelConfig } from '../model/config.js';
import type { Params } from '../model/fused.js';
import type { OptimizerState } from '../optim/optimizer.js';
import type { ResolvedOptimizer } from '../optim/options.js';
import type { Tensor } from '../tf/load.js';
import type { Ops } from '../tf/ops.js';
import { disposeAll } from '../weights-store.js';

/** Weights and how they have moved. Tensors in it are never changed in place. */
export interface ModelState {
  params: Params;
  optimizer: OptimizerState;
}

/** Everything an update reads and replaces. */
export interface TrainState {
  policy: ModelState;
  /** A value model of its own. */
  critic: ModelState | null;
  /** Updates made since the run began. */
  version: number;
}

/** What is fixed about a model. */
export interface Model {
  config: ModelConfig;
  optimizer: ResolvedOptimizer;
  lora: LoraOptions | null;
}

/** What updates work with. */
export interface Workbench {
  ops: Ops;
  policy: Model;
  critic: Model | null;
  /** Weights that a KL term is taken against. */
  reference: Params | null;
  microBatchTokens: number;
  /** Micro-batches above this many tokens keep only each layer's input for the backward pass. */
  checkpointAbove: number;
}

function tensorsOf({ policy, critic }: TrainState): Set<Tensor> {
  const models = critic ? [policy, critic] : [policy];
  return new Set(
    models.flatMap(({ params, optimizer }) => [...params.values(), ...optimizer.moments.values()]),
  );
}

/** Frees what is in `old` and in none of `kept`. */
export function disposeState(old: TrainState, ...kept: readonly TrainState[]): void {
  const alive = kept.map(tensorsOf);
  disposeAll([...tensorsOf(old)].filter((tensor) => !alive.some((set) => set.has(tensor))));
}
