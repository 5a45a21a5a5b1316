import { TreewardError } from '@treeward/base';
import type { Params } from '../model/fused.js';
import { tidy } from '../model/decoder.js';
import { isHidden } from '../model/params.js';
import { kernelsOf } from '../tf/kernels.js';
import type { Ops } from '../tf/ops.js';
import { muonStep } from './muon.js';
import type { ResolvedOptimizer } from './options.js';

/** Steps taken, and the moments under `adam.m.<param>`, `adam.v.<param>`, `muon.<param>`. */
export interface OptimizerState {
  steps: number;
  moments: Params;
}

export interface StepResult {
  params: Params;
  state: OptimizerState;
  /** Before clipping. */
  gradNorm: number;
}

/**
 * One step from `params` and `state` to new ones; the old stay as they are (and the caller's), so that an update of many
 * steps can be dropped as a whole.
 *
 * @throws TreewardError LEARNER_E_NONFINITE when the gradient has no finite norm
 */
export function optimizerStep(
  ops: Ops,
  options: ResolvedOptimizer,
  params: Params,
  state: OptimizerState,
  grads: Params,
  { lr, maxGradNorm }: { lr: number; maxGradNorm: number },
): StepResult {
  let gradNorm = 0;
  const result = tidy(ops.tf, () => {
    gradNorm = globalNorm(ops, grads);
    if (!Number.isFinite(gradNorm)) {
      throw new TreewardError('LEARNER_E_NONFINITE', `the gradient's norm is ${gradNorm}`, {
        hints: ['lower the learning rate', 'check rewards and advantages for extreme values'],
      });
    }
    // As torch's clip_grad_norm_ has it.
    const coefficient = maxGradNorm > 0 ? Math.min(1, maxGradNorm / (gradNorm + 1e-6)) : 1;
    const clip = ops.tf.scalar(coefficient);
    const step = state.steps + 1;
    const newParams: Record<string, Params extends Map<string, infer T> ? T : never> = {};
    const moments: typeof newParams = {};
    const muonGrads: Params = new Map();
    const { betas, eps } = options;
    const common = { lr, betas, eps, step, gradScale: coefficient };
    const adamw = kernelsOf(ops).adamw(common);
    const decaying =
      options.weightDecay === 0
        ? adamw
        : kernelsOf(ops).adamw({ ...common, weightDecay: options.weightDecay });
    for (const [name, grad] of grads) {
      const param = params.get(name)!;
      if (options.kind === 'muon' && isHidden(name)) {
        muonGrads.set(name, coefficient === 1 ? grad : ops.mul(grad, clip));
        continue;
      }
      const m = state.moments.get(`adam.m.${name}`);
      const v = state.moments.get(`adam.v.${name}`);
      const move = param.shape.length > 1 ? decaying : adamw;
      const next = move(param, grad, m && v ? { m, v } : undefined);
      newParams[name] = next.param;
      moments[`adam.m.${name}`] = next.m;
      moments[`adam.v.${name}`] = next.v;
    }
    const momenta: Params = new Map();
    for (const name of muonGrads.keys()) {
      const momentum = state.moments.get(`muon.${name}`);
      if (momentum) momenta.set(name, momentum);
    }
    const muonLr = (options.muonLr * lr) / options.lr;
    const moved = muonStep(ops, params, muonGrads, momenta, {
      lr: muonLr,
      momentum: options.muonMomentum,
      weightDecay: options.muonWeightDecay,
    });
    for (const [name, next] of moved) {
      newParams[name] = next.param;
      moments[`muon.${name}`] = next.momentum;
    }
    return { newParams, moments };
  });
  // The order of the old map, which is the order of everything that is written. What has no gradient stays the same tensor,
  // with the same moments.
  const ordered: Params = new Map([...params].map(([name, old]) => [name, result.newParams[name] ?? old]));
  return {
    params: ordered,
    state: {
      steps: state.steps + 1,
      moments: new Map([...state.moments, ...Object.entries(result.moments)]),
    },
    gradNorm,
  };
}

/** sqrt of the sum of squares over all arrays. */
function globalNorm(ops: Ops, grads: Params): number {
  const halves = [...grads.values()].map((grad) => ops.l2Loss(grad));
  return Math.sqrt(2 * ops.sum(ops.pack(halves), [0]).dataSync()[0]!);
}
