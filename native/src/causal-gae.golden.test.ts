// Generalised advantage estimation of flat rows by verl, OpenRLHF and torchrl (datasets/golden/gae.json), through every
// implementation: a row is a chain of calls of one token each, so that every token can carry a reward. What the libraries do at
// masked tokens and ends is told by the chain: verl skips masked tokens; OpenRLHF makes them states of value 0; at torchrl's
// truncated ends the value of what would have come is part of the last reward. Values are rounded to float32: rtol 1e-5, atol 2e-6.
import { describe, expect, test } from 'vitest';
import type { CausalGaeInput } from './index.js';
import { goldenCases } from './testing/golden.js';
import { implementations } from './testing/implementations.js';

interface Case {
  name: string;
  args: Record<string, number> & { lam_per_row?: number[] };
  inputs: Record<string, number[][]>;
  outputs: Record<string, number[][]>;
}
/** One chain: which tokens of its row it holds, and what stands on them. */
interface Chain {
  tokens: number[];
  rewards: number[];
  values: number[];
}

const chainOf = ({ rewards, values }: Chain): CausalGaeInput => {
  const T = values.length;
  return {
    values_T: Float32Array.from(values),
    callOffset_R1: Int32Array.of(0, T),
    tokenOffset_C1: Int32Array.from({ length: T + 1 }, (_, t) => t),
    successorOffset_C1: Int32Array.from({ length: T + 1 }, (_, t) => Math.min(t, Math.max(0, T - 1))),
    successor_L: Int32Array.from({ length: Math.max(0, T - 1) }, (_, t) => t + 1),
    weight_L: new Float32Array(Math.max(0, T - 1)).fill(1),
    reward_C: Float32Array.from(rewards),
  };
};

const chain = (tokens: number[], reward: (t: number) => number, value: (t: number) => number): Chain => ({
  tokens,
  rewards: tokens.map(reward),
  values: tokens.map(value),
});

function chainsOf({ name, args, inputs }: Case, b: number): Chain[] {
  const all = Object.values(inputs)[0]![b]!.map((_, t) => t);
  const { values, token_level_rewards, response_mask, rewards, action_mask } = inputs;
  if (name.startsWith('verl/')) {
    const kept = all.filter((t) => response_mask![b]![t] === 1);
    return [
      chain(
        kept,
        (t) => token_level_rewards![b]![t]!,
        (t) => values![b]![t]!,
      ),
    ];
  }
  if (name.startsWith('openrlhf/')) {
    const m = action_mask![b]!;
    return [
      chain(
        all,
        (t) => rewards![b]![t]! * m[t]!,
        (t) => values![b]![t]! * m[t]!,
      ),
    ];
  }
  const { reward, state_value, next_state_value, done, terminated } = inputs;
  const ends = all.filter((t) => done![b]![t]);
  return ends.map((end, i) => {
    const cut = terminated![b]![end] ? 0 : args['gamma']! * next_state_value![b]![end]!;
    return chain(
      all.slice(i === 0 ? 0 : ends[i - 1]! + 1, end + 1),
      (t) => reward![b]![t]! + (t === end ? cut : 0),
      (t) => state_value![b]![t]!,
    );
  });
}

function close(got: number, want: number): void {
  expect(Math.abs(got - want)).toBeLessThanOrEqual(2e-6 + 1e-5 * Math.abs(want));
}

describe.each(implementations)('$name', ({ binding, backend }) => {
  test.each(goldenCases<Case>('gae.json'))('golden $name', (golden) => {
    const { args, inputs, outputs } = golden;
    const advantages = outputs['advantages_unwhitened'] ?? outputs['advantage']!;
    const targets = outputs['returns'] ?? outputs['value_target']!;
    const lambdaOf = (b: number): number =>
      args.lam_per_row?.[b] ?? args['lam'] ?? args['lmbda'] ?? args['lam_policy']!;
    const mask = inputs['response_mask'] ?? inputs['action_mask'];
    let compared = 0;
    advantages.forEach((row, b) => {
      for (const one of chainsOf(golden, b)) {
        const gamma = args['gamma']!;
        const input = chainOf(one);
        const { advantages_T } = binding.causalGae(input, { gamma, lambda: lambdaOf(b) }, backend);
        const { targets_T } = binding.causalGae(
          input,
          { gamma, lambda: args['lam_critic'] ?? lambdaOf(b) },
          backend,
        );
        one.tokens.forEach((t, i) => {
          if (mask && mask[b]![t] !== 1) return;
          close(advantages_T[i]!, row[t]!);
          close(targets_T[i]!, targets[b]![t]!);
          compared++;
        });
      }
    });
    expect(compared).toBe((mask ?? advantages).flat().filter((x) => !mask || x === 1).length);
  });
});
