import { expect, it } from 'vitest';
import { scheduledRate } from './schedule.js';

it('rises to the peak and falls to the floor', () => {
  const rates = (shape: 'constant' | 'linear' | 'cosine'): number[] =>
    [1, 2, 4, 7, 12, 20].map((step) => scheduledRate({ lr: 1, warmupSteps: 2, shape, floor: 0.1 }, step, 12));
  expect(rates('constant')).toEqual([0.5, 1, 1, 1, 1, 1]);
  rates('linear').forEach((rate, i) => expect(rate).toBeCloseTo([0.5, 1, 0.82, 0.55, 0.1, 0.1][i]!, 10));
  expect(rates('cosine')[3]).toBeCloseTo(0.55, 10);
  expect(rates('cosine').at(-1)).toBeCloseTo(0.1, 10);
});
