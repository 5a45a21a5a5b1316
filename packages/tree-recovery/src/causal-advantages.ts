import type { CausalOrder } from './types.js';

// C calls, T tokens of all calls, one call after the other, L links.
export interface CausalCredit {
  /** Tokens of call c are `tokenOffset_C1[c] .. tokenOffset_C1[c+1]`; a call may have none. */
  tokenOffset_C1: Int32Array;
  /** Value before each token; a call's first one is the value at its start. */
  values_T: Float64Array;
  /** The rollout's reward: what every sink receives. */
  reward: number;
  gamma: number;
  lambda: number;
}

/**
 * Generalised advantages along a causal order, in f64: the reference that the native kernel is checked against.
 *
 *     delta_t  = r_t + gamma * sum_s w_s V_s - V_t        (at a sink: r = reward, no bootstrap)
 *     A_t      = delta_t + gamma * lambda * sum_s w_s A_s
 *     target_t = A_t + V_t
 *
 * s runs over the next token within a call, and over the first tokens of its successors at its end. A call without
 * tokens hands on what its successors say. Successors must stand behind their call.
 */
export function causalAdvantages(
  order: CausalOrder,
  { tokenOffset_C1, values_T, reward, gamma, lambda }: CausalCredit,
): { advantages_T: Float64Array; targets_T: Float64Array } {
  const numCalls = order.offset_C1.length - 1;
  const advantages_T = new Float64Array(values_T.length);
  const targets_T = new Float64Array(values_T.length);
  // What a predecessor sees of each call: reward reached without another token, first value, first advantage.
  const reward_C = new Float64Array(numCalls);
  const value_C = new Float64Array(numCalls);
  const advantage_C = new Float64Array(numCalls);
  for (let c = numCalls - 1; c >= 0; c--) {
    let r = 0;
    let nextValue = 0;
    let nextAdvantage = 0;
    const last = order.offset_C1[c + 1]!;
    for (let l = order.offset_C1[c]!; l < last; l++) {
      const s = order.successor_L[l]!;
      if (s <= c) throw new RangeError(`call ${c} has successor ${s}, which does not stand behind it`);
      const w = order.weight_L[l]!;
      r += w * reward_C[s]!;
      nextValue += w * value_C[s]!;
      nextAdvantage += w * advantage_C[s]!;
    }
    if (order.offset_C1[c] === last) r = reward;
    for (let t = tokenOffset_C1[c + 1]! - 1; t >= tokenOffset_C1[c]!; t--) {
      const value = values_T[t]!;
      const advantage = r + gamma * nextValue - value + gamma * lambda * nextAdvantage;
      advantages_T[t] = advantage;
      targets_T[t] = advantage + value;
      r = 0;
      nextValue = value;
      nextAdvantage = advantage;
    }
    reward_C[c] = r;
    value_C[c] = nextValue;
    advantage_C[c] = nextAdvantage;
  }
  return { advantages_T, targets_T };
}
