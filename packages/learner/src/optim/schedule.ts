/** How a learning rate moves over a run. */
export interface RateSchedule {
  /** The peak. */
  lr: number;
  /** Steps of linear rise to it. */
  warmupSteps: number;
  shape: 'constant' | 'linear' | 'cosine';
  /** What is left of it at the last step, as a share. */
  floor: number;
}

/** Rate of step `step` (from 1) of `steps`. */
export function scheduledRate(
  { lr, warmupSteps, shape, floor }: RateSchedule,
  step: number,
  steps: number,
): number {
  if (step <= warmupSteps) return (lr * step) / warmupSteps;
  if (shape === 'constant') return lr;
  const done = Math.min(1, (step - warmupSteps) / Math.max(1, steps - warmupSteps));
  const share = shape === 'linear' ? 1 - done : (1 + Math.cos(Math.PI * done)) / 2;
  return lr * (floor + (1 - floor) * share);
}
