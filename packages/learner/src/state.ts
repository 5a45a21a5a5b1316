import type { ModelConfig } from './model/config.js';
import type { Params } from './model/fused.js';
import type { OptimizerState } from './optim/optimizer.js';
import type { ResolvedOptimizer } from './optim/options.js';
import type { Ops } from './tf/ops.js';
import { disposeAll } from './weights-store.js';

/** Everything an update reads and replaces. Tensors in it are never changed in place. */
export interface TrainState {
  params: Params;
  optimizer: OptimizerState;
  /** Updates made since the run began. */
  version: number;
}

/** What updates work with. */
export interface Workbench {
  ops: Ops;
  config: ModelConfig;
  optimizer: ResolvedOptimizer;
  microBatchTokens: number;
}

export function disposeState({ params, optimizer }: TrainState): void {
  disposeAll([...params.values(), ...optimizer.moments.values()]);
}
