import { causalAdvantages, causalOrders } from '@treeward/tree-recovery';
import type { Critic } from './critics.js';
import type { Estimator } from './estimators.js';

export type Order = 'chain' | 'lineage';

/** Treeward's own credit on a toy: its causal orders, its advantages. */
export function causalEstimator(critic: Critic, order: Order, lambda: number, gamma = 1): Estimator {
  return (run) => {
    const values = critic(run);
    const calls = run.calls.map((_, call) => ({ call, role: 'main' as const }));
    const number = new Map(run.calls.map(({ name }, i) => [name, i]));
    const edges = run.edges.map(({ from, to, type }) => ({
      from: number.get(from)!,
      to: number.get(to)!,
      type,
    }));
    const tokenOffset_C1 = Int32Array.from([0, ...run.calls.map(({ tokens }) => tokens.length)]);
    for (let i = 1; i < tokenOffset_C1.length; i++) tokenOffset_C1[i]! += tokenOffset_C1[i - 1]!;
    const { advantages_T } = causalAdvantages(causalOrders(calls, edges)[order], {
      tokenOffset_C1,
      values_T: Float64Array.from(values.flat()),
      reward: run.reward,
      gamma,
      lambda,
    });
    return run.calls.map((_, i) => [...advantages_T.subarray(tokenOffset_C1[i]!, tokenOffset_C1[i + 1]!)]);
  };
}
