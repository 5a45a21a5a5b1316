import { randomStream } from '@treeward/base';
import { expect, it } from 'vitest';
import { fitConfidence, reliability } from './calibration.js';
import type { Judged } from './edge-score.js';

const random = randomStream('calibration');
const drawn = (confidence: number, chance: number, n: number, evidence = 'x', behaviour = 'some'): Judged[] =>
  Array.from({ length: n }, () => {
    return { type: 'retry', evidence, confidence, behaviour, right: random.next() < chance };
  });

it('sees well and badly calibrated confidences, and beats the best constant only where it knows more', () => {
  const good = reliability([...drawn(0.9, 0.9, 5000), ...drawn(0.5, 0.5, 5000)]);
  expect(good.n).toBe(10_000);
  expect(good.error).toBeLessThan(0.02);
  expect(good.brier).toBeLessThan(good.constantBrier);
  expect(reliability(drawn(0.9, 0.6, 5000)).error).toBeCloseTo(0.3, 1);
  const constant = reliability([...drawn(0.7, 0.9, 5000), ...drawn(0.7, 0.5, 5000)]);
  expect(constant.brier).toBeCloseTo(constant.constantBrier, 2);
  expect(reliability([])).toEqual({ n: 0, error: 0, brier: 0, constantBrier: 0 });
});

it('ten bins of equal mass, by hand', () => {
  const judged = Array.from({ length: 10 }, (_, i) => ({ confidence: i / 10, right: i >= 5 }));
  // Each bin holds one edge: five gaps of i/10 below, five of 1 - i/10 above.
  expect(reliability(judged).error).toBeCloseTo(
    (0 + 0.1 + 0.2 + 0.3 + 0.4 + 0.5 + 0.4 + 0.3 + 0.2 + 0.1) / 10,
  );
});

it('fits the share of right edges per kind of evidence, drawn to the type where a kind is rare', () => {
  const table = fitConfidence([
    ...drawn(0, 0.9, 2000, 'a+b'),
    ...drawn(0, 0.4, 2000, 'c'),
    ...drawn(0, 1, 1, 'rare'),
  ]);
  const { '*': all, 'a+b': ab, c, rare } = table.types.retry!;
  expect(ab).toBeCloseTo(0.9, 1);
  expect(c).toBeCloseTo(0.4, 1);
  expect(all).toBeCloseTo(0.65, 1);
  expect(rare! - all!).toBeLessThan(0.1);
});

it('a kind of evidence whose worth changes from behaviour to behaviour is drawn to the type', () => {
  const behaviours = Array.from({ length: 12 }, (_, i) => `b${i}`);
  const common = behaviours.flatMap((name) => drawn(0, 0.95, 400, 'common', name));
  // Few in each, all right in one behaviour and all wrong in the next.
  const moody = behaviours.flatMap((name, i) => drawn(0, i % 2, 4, 'moody', name));
  const steady = behaviours.flatMap((name) => drawn(0, 0, 4, 'steady', name));
  const fickle = fitConfidence([...common, ...moody.slice(0, 8)]).types.retry!;
  const firm = fitConfidence([...common, ...steady.slice(0, 8)]).types.retry!;
  expect(fickle['moody']!).toBeGreaterThan(firm['steady']!);
  expect(firm['steady']!).toBeLessThan(0.5);
});
