import type { Values } from '../simulate/oracle.js';
import type { Successors } from './successors.js';

/** Advantage of each sampled token, by call; calls without are not trained. */
export type Advantages = ReadonlyMap<number, Float64Array>;

/** Generalised advantages (gamma 1) along a causal order whose edges lead to larger call numbers. */
export function advantagesAlong(
  successors: Successors,
  values: Values,
  reward: number,
  lambda: number,
): Advantages {
  const result = new Map<number, Float64Array>();
  const first = new Map<number, { value: number; advantage: number }>();
  for (const call of [...values.keys()].sort((a, b) => b - a)) {
    const value_T = values.get(call)!;
    const next = (successors.get(call) ?? []).filter(({ to }) => first.has(to));
    const weight = next.reduce((sum, { weight: w }) => sum + w, 0);
    let ahead = { value: reward, advantage: 0 };
    if (weight > 0) {
      ahead = { value: 0, advantage: 0 };
      for (const { to, weight: w } of next) {
        ahead.value += (w / weight) * first.get(to)!.value;
        ahead.advantage += (w / weight) * first.get(to)!.advantage;
      }
    }
    const out = new Float64Array(value_T.length);
    for (let t = value_T.length - 1; t >= 0; t--) {
      const advantage = ahead.value - value_T[t]! + lambda * ahead.advantage;
      out[t] = advantage;
      ahead = { value: value_T[t]!, advantage };
    }
    result.set(call, out);
    first.set(call, ahead);
  }
  return result;
}

/** A token is wrong when its advantage is off by more than this share of the rollout's mean |advantage|. */
const TOLERANCE = 0.01;

/** Share of |advantage| that lies on wrong tokens; a token that only one side trains counts with what that side gives it. */
export function wrongShare(right: Advantages, given: Advantages): number {
  let mass = 0;
  let wrong = 0;
  const all = [...right.values()].flatMap((list) => [...list]);
  const mean = all.reduce((sum, x) => sum + Math.abs(x), 0) / Math.max(1, all.length);
  for (const call of new Set([...right.keys(), ...given.keys()])) {
    const a_T = right.get(call);
    const b_T = given.get(call);
    const count = Math.max(a_T?.length ?? 0, b_T?.length ?? 0);
    for (let t = 0; t < count; t++) {
      const a = a_T?.[t] ?? 0;
      const b = b_T?.[t] ?? 0;
      const size = Math.max(Math.abs(a), Math.abs(b));
      mass += size;
      if (Math.abs(a - b) > TOLERANCE * mean) wrong += size;
    }
  }
  return mass === 0 ? 0 : wrong / mass;
}
