import { randomStream } from '@treeward/base';
import type { TrueCall } from './truth.js';

/** Value before each sampled token, by call. */
export type Values = ReadonlyMap<number, Float64Array>;

/** Standard deviation of what one token does to the outcome, and of what nobody did. */
const TOKEN_EFFECT = 0.08;
const LUCK = 1;

/**
 * Oracle values: every token moves a hidden score a little, the reward is 1 when the sum is above 0, and the value before a
 * token is the probability of that, given the tokens of all calls that had finished before this call started and its own
 * earlier ones. Side calls change nothing.
 */
export function oracle(calls: readonly TrueCall[], seed: string): { values: Values; reward: number } {
  const effects = new Map(
    calls.map(({ call, role, tokens }) => {
      const random = randomStream(seed, 'effect', call);
      const size = role === 'side' ? 0 : TOKEN_EFFECT;
      return [call, Float64Array.from(tokens, () => size * random.normal())];
    }),
  );
  const total = (call: number): number => effects.get(call)!.reduce((sum, x) => sum + x, 0);
  const finished = calls
    .map(({ call, finish }) => ({ finish, sum: total(call) }))
    .sort((a, b) => a.finish - b.finish);
  let effect = 0;
  const before = finished.map(({ sum }) => (effect += sum) - sum);
  before.push(effect);
  const values = new Map(
    calls.map(({ call, start }) => {
      let sum = before[countUntil(finished, start)]!;
      return [
        call,
        effects.get(call)!.map((change) => {
          const value = above(sum / LUCK);
          sum += change;
          return value;
        }),
      ];
    }),
  );
  const score = calls.reduce((sum, { call }) => sum + total(call), 0);
  const reward = score + LUCK * randomStream(seed, 'luck').normal() > 0 ? 1 : 0;
  return { values, reward };
}

/** Probability that a standard normal is below `x` (logistic approximation: the exact shape does not matter here). */
const above = (x: number): number => 1 / (1 + Math.exp(-1.702 * x));

/** How many of a list sorted by time had finished at `time`. */
function countUntil(finished: readonly { finish: number }[], time: number): number {
  let low = 0;
  let high = finished.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (finished[middle]!.finish <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
