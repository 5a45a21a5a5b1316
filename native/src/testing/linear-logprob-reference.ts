import type { LinearLogprobBackwardInput, LinearLogprobOptions } from '../linear-logprob.js';

type Numbers<T> = { [K in keyof T]: ArrayLike<number> };

/** Slow, plain, float64: the whole row of logits. Tests only; float32 operands. */
export function linearLogprobReference(
  input: Partial<Numbers<LinearLogprobBackwardInput>> &
    Pick<Numbers<LinearLogprobBackwardInput>, 'hidden_TD' | 'weight_VD' | 'chosen_T'>,
  { hiddenSize: D, temperature = 1 }: LinearLogprobOptions,
): Record<'logp_T' | 'entropy_T' | 'gradHidden_TD' | 'gradWeight_VD', Float64Array> {
  const [T, V] = [input.chosen_T.length, input.weight_VD.length / D];
  const logp_T = new Float64Array(T);
  const entropy_T = new Float64Array(T);
  const gradHidden_TD = new Float64Array(T * D);
  const gradWeight_VD = new Float64Array(V * D);
  for (let t = 0; t < T; t++) {
    const tau = temperature * (input.temperature_T?.[t] ?? 1);
    const z_V = Float64Array.from({ length: V }, (_, v) => {
      let sum = 0;
      for (let d = 0; d < D; d++) sum += input.hidden_TD[t * D + d]! * input.weight_VD[v * D + d]!;
      return (sum + (input.bias_V?.[v] ?? 0)) / tau;
    });
    const largest = z_V.reduce((a, b) => Math.max(a, b), -Infinity);
    const log = Math.log(z_V.reduce((sum, z) => sum + Math.exp(z - largest), 0));
    const logp_V = z_V.map((z) => z - largest - log);
    logp_T[t] = logp_V[input.chosen_T[t]!]!;
    entropy_T[t] = -logp_V.reduce((sum, l) => sum + (l === -Infinity ? 0 : Math.exp(l) * l), 0);
    const [gradLogp, gradEntropy] = [input.gradLogp_T?.[t] ?? 0, input.gradEntropy_T?.[t] ?? 0];
    logp_V.forEach((l, v) => {
      const p = Math.exp(l);
      const onehot = v === input.chosen_T[t] ? gradLogp : 0;
      const gradient = (onehot - (p > 0 ? p * (gradLogp + gradEntropy * (l + entropy_T[t]!)) : 0)) / tau;
      for (let d = 0; d < D; d++) {
        gradHidden_TD[t * D + d]! += gradient * input.weight_VD[v * D + d]!;
        gradWeight_VD[v * D + d]! += gradient * input.hidden_TD[t * D + d]!;
      }
    });
  }
  return { logp_T, entropy_T, gradHidden_TD, gradWeight_VD };
}
