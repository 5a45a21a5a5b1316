import { optimizerStep } from '../optim/optimizer.js';
import type { Ops } from '../tf/ops.js';
import type { OptimizerStep } from '../types.js';
import { disposeAll, type GradientSum } from '../weights-store.js';
import type { Model, ModelState } from './state.js';

/** One optimizer step with the summed gradient, which is used up. The old state stays as it is. */
export function stepModel(
  ops: Ops,
  model: Model,
  old: ModelState,
  gradients: GradientSum,
  step: OptimizerStep,
): { model: ModelState; gradNorm: number } {
  const grads = gradients.finish(old.params);
  try {
    const next = optimizerStep(ops, model.optimizer, old.params, old.optimizer, grads, step);
    return { model: { params: next.params, optimizer: next.state }, gradNorm: next.gradNorm };
  } finally {
    disposeAll(grads.values());
  }
}
