import type { AdamwOptions } from '../adamw.js';

/** Slow, plain, float64, as torch's documentation has it. Tests only. In place. */
export function adamwReference(
  arrays: Record<'param_N' | 'm_N' | 'v_N', Float64Array> & { grad_N: ArrayLike<number> },
  { lr, betas: [beta1, beta2], eps, weightDecay = 0, step, gradScale = 1 }: AdamwOptions,
): void {
  const { param_N, grad_N, m_N, v_N } = arrays;
  for (let i = 0; i < param_N.length; i++) {
    const grad = grad_N[i]! * gradScale;
    m_N[i] = beta1 * m_N[i]! + (1 - beta1) * grad;
    v_N[i] = beta2 * v_N[i]! + (1 - beta2) * grad ** 2;
    const mean = m_N[i]! / (1 - beta1 ** step);
    const square = v_N[i]! / (1 - beta2 ** step);
    param_N[i] = param_N[i]! * (1 - lr * weightDecay) - (lr * mean) / (Math.sqrt(square) + eps);
  }
}
