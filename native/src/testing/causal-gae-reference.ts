import type { CausalGaeInput, CausalGaeOptions } from '../causal-gae.js';

/**
 * Slow, plain, float64, by recursion on advantages (recovery.md §5) rather than on returns as the kernels do:
 * δ = r + γ Σ w V_s − V, A = δ + γ λ Σ w A_s. Tests only; no cycles.
 */
export function causalGaeReference(
  input: { [K in keyof CausalGaeInput]: ArrayLike<number> },
  { gamma, lambda }: CausalGaeOptions,
): { advantages_T: Float64Array; targets_T: Float64Array } {
  const { values_T, tokenOffset_C1, successorOffset_C1, successor_L, weight_L, reward_C } = input;
  const advantages_T = new Float64Array(values_T.length);
  interface Front {
    value: number;
    advantage: number;
    reward: number;
  }
  const fronts = new Map<number, Front>();
  const after = (call: number): Front => {
    const sum: Front = { value: 0, advantage: 0, reward: reward_C[call]! };
    for (let e = successorOffset_C1[call]!; e < successorOffset_C1[call + 1]!; e++) {
      const next = front(successor_L[e]!);
      sum.value += weight_L[e]! * next.value;
      sum.advantage += weight_L[e]! * next.advantage;
      sum.reward += weight_L[e]! * next.reward;
    }
    return sum;
  };
  const front = (call: number): Front => {
    const known = fronts.get(call);
    if (known) return known;
    let { value, advantage, reward } = after(call);
    for (let t = tokenOffset_C1[call + 1]! - 1; t >= tokenOffset_C1[call]!; t--) {
      advantage = reward + gamma * value - values_T[t]! + gamma * lambda * advantage;
      advantages_T[t] = advantage;
      value = values_T[t]!;
      reward = 0;
    }
    const result = { value, advantage, reward };
    fronts.set(call, result);
    return result;
  };
  for (let call = 0; call < reward_C.length; call++) front(call);
  return { advantages_T, targets_T: advantages_T.map((a, t) => a + values_T[t]!) };
}
