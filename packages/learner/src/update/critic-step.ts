import { setImmediate } from 'node:timers/promises';
import { valueLoss } from '@treeward/native';
import type { Forest } from '../pack/forest.js';
import type { CriticLoss, OptimizerStep, PackedTrees } from '../types.js';
import { GradientSum, withFused } from '../weights-store.js';
import { criticPieces } from './critic.js';
import { stepModel } from './step-model.js';
import type { Model, ModelState, Workbench } from './state.js';

/** What the values of a batch are trained towards. */
export interface ValueTerms {
  valuesOld_T: Float32Array;
  targets_T: Float32Array;
}

interface ValueStepResult {
  model: ModelState;
  loss: number;
  gradNorm: number;
}

/** One step of a value model of its own, on the mean squared error of the given tokens. */
export async function criticStep(
  bench: Workbench,
  model: Model,
  old: ModelState,
  batch: PackedTrees,
  forest: Forest,
  critic: CriticLoss,
  { valuesOld_T, targets_T }: ValueTerms,
  tokens: readonly number[],
  step: OptimizerStep,
): Promise<ValueStepResult> {
  const { ops } = bench;
  const gradients = new GradientSum(ops, model);
  let total = 0;
  try {
    await withFused(ops, model, old.params, async (fused) => {
      for (const piece of criticPieces(bench, model, batch, forest, critic, tokens)) {
        const take = (from: Float32Array): Float32Array =>
          Float32Array.from(piece.source_M, (token) => from[token]!);
        const grads = piece.run(fused, (values_T) => {
          const { loss, gradValues_T } = valueLoss(
            {
              values_T,
              valuesOld_T: take(valuesOld_T),
              targets_T: take(targets_T),
              mask_T: new Float32Array(values_T.length).fill(1),
            },
            { clip: critic.clip ?? Infinity, normaliser: tokens.length },
          );
          total += loss;
          return gradValues_T;
        });
        gradients.add(grads!);
        await setImmediate();
      }
    });
    if (gradients.empty) return { model: old, loss: 0, gradNorm: 0 };
    const next = stepModel(ops, model, old, gradients, { lr: critic.lr, maxGradNorm: step.maxGradNorm });
    return { model: next.model, loss: total, gradNorm: next.gradNorm };
  } finally {
    gradients.dispose();
  }
}

/** 1 − var(target − value) / var(target) over the given tokens; 0 when the targets are all equal. */
export function explainedVariance({ valuesOld_T, targets_T }: ValueTerms, tokens: readonly number[]): number {
  const variance = (of: (token: number) => number): number => {
    const mean = tokens.reduce((sum, token) => sum + of(token), 0) / tokens.length;
    return tokens.reduce((sum, token) => sum + (of(token) - mean) ** 2, 0) / tokens.length;
  };
  const total = variance((token) => targets_T[token]!);
  return total === 0 ? 0 : 1 - variance((token) => targets_T[token]! - valuesOld_T[token]!) / total;
}
