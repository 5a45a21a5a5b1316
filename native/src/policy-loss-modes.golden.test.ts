// Objectives, dual clip, KL and masked weights against verl, TRL and OpenRLHF (datasets/golden/policy_loss.json, kl.json), through
// every implementation. How a library averages is a weight per token; where its convention differs, the option that reproduces
// it is in the table. Inputs are rounded to float32: rtol 1e-5, atol 1e-6.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { PolicyLossInput, PolicyLossOptions } from './index.js';
import { implementations } from './testing/implementations.js';

type Matrix = number[][];
interface Case {
  name: string;
  args: Record<string, number | string | boolean | number[]>;
  inputs: Record<string, Matrix>;
  outputs: { loss: number; grad_log_prob: Matrix; kl: Matrix; grad_log_prob_of_sum: Matrix };
}
const read = (file: string): Case[] =>
  (
    JSON.parse(readFileSync(new URL(`../../datasets/golden/${file}`, import.meta.url), 'utf8')) as {
      cases: Case[];
    }
  ).cases;
const flat = (matrix: Matrix): Float32Array => Float32Array.from(matrix.flat());

function close(got: ArrayLike<number>, want: ArrayLike<number>, what: string, absolute = 1e-6): void {
  expect(got.length).toBe(want.length);
  for (let i = 0; i < want.length; i++) {
    const error = Math.abs(got[i]! - want[i]!);
    if (!(error <= absolute + 1e-5 * Math.abs(want[i]!)))
      throw new Error(`${what}[${i}]: got ${got[i]}, want ${want[i]}`);
  }
}

/** Weights per token for the ways the libraries average. */
function weights(mask: Matrix, mode: string): Matrix {
  const lengths = mask.map((row) => row.reduce((a, b) => a + b, 0));
  const total = lengths.reduce((a, b) => a + b, 0);
  const rows = lengths.filter((length) => length > 0).length;
  return mask.map((row, b) =>
    row.map((m) => {
      if (m === 0) return 0;
      switch (mode) {
        case 'token-mean':
          return 1 / total;
        case 'token-sum':
          return 1;
        case 'seq-mean-token-sum':
          return 1 / rows;
        case 'seq-mean-token-sum-norm':
          return 1 / (rows * row.length);
        case 'all-rows-token-mean':
          return 1 / (mask.length * lengths[b]!);
        default:
          return 1 / (rows * lengths[b]!);
      }
    }),
  );
}

interface Mode {
  match: RegExp;
  averaging: (args: Case['args']) => string;
  options: (args: Case['args']) => Partial<PolicyLossOptions>;
}
const verlAveraging = (args: Case['args']): string => args['loss_agg_mode'] as string;
const verlClip = (args: Case['args']): Partial<PolicyLossOptions> => ({
  clipLow: args['clip_ratio_low'] as number,
  clipHigh: args['clip_ratio_high'] as number,
});
const openrlhfClip = (args: Case['args']): Partial<PolicyLossOptions> => ({
  clipLow: args['clip_eps_low'] as number,
  clipHigh: args['clip_eps_high'] as number,
});
const trlClip = (args: Case['args']): Partial<PolicyLossOptions> => ({
  clipLow: args['epsilon_low'] as number,
  clipHigh: args['epsilon_high'] as number,
});
const modes: Mode[] = [
  // verl's PPO always has the dual clip.
  {
    match: /^ppo_clip\/|^ppo_clip_advantage/,
    averaging: verlAveraging,
    options: (a) => ({ ...verlClip(a), dualClip: a['clip_ratio_c'] as number }),
  },
  {
    match: /^gspo/,
    averaging: verlAveraging,
    options: (a) => ({ ...verlClip(a), objective: 'gspo', logRatioMax: 10 }),
  },
  { match: /^cispo/, averaging: verlAveraging, options: (a) => ({ ...verlClip(a), objective: 'cispo' }) },
  {
    match: /^openrlhf\/dual_clip/,
    averaging: () => 'token-mean',
    options: (a) => ({ ...openrlhfClip(a), dualClip: a['dual_clip'] as number }),
  },
  {
    match: /^openrlhf\/token_level_loss=False/,
    averaging: () => 'seq-mean-token-mean',
    options: openrlhfClip,
  },
  {
    match: /^openrlhf\/gspo_advantage_per_rollout/,
    averaging: () => 'seq-mean-token-mean',
    options: (a) => ({ ...openrlhfClip(a), objective: 'gspo' }),
  },
  {
    match: /^openrlhf\/is_correction_level=token,is_correction_mode=mask,is_correction_threshold/,
    averaging: () => 'token-mean',
    options: (a) => {
      const [importanceLow, truncation] = a['is_correction_threshold'] as number[];
      return {
        ...openrlhfClip(a),
        importance: 'mask',
        importanceLow: importanceLow!,
        truncation: truncation!,
      };
    },
  },
  {
    match: /^trl\/grpo_delta/,
    averaging: () => 'all-rows-token-mean',
    options: (a) => ({ ...trlClip(a), dualClip: a['delta'] as number }),
  },
  {
    match: /^trl\/gspo_sequence_level/,
    averaging: () => 'all-rows-token-mean',
    options: (a) => ({ ...trlClip(a), objective: 'gspo' }),
  },
  // TRL's CISPO cuts at epsilon_high itself and only above.
  {
    match: /^trl\/cispo/,
    averaging: () => 'token-mean',
    options: (a) => ({ objective: 'cispo', clipLow: 1, clipHigh: (a['epsilon_high'] as number) - 1 }),
  },
  {
    match: /^trl\/grpo_beta=0.04$/,
    averaging: () => 'all-rows-token-mean',
    options: (a) => ({ ...trlClip(a), kl: 'k3', klCoef: a['beta'] as number }),
  },
];

const policyCases = read('policy_loss.json');
const cases = modes.flatMap((mode) => {
  const found = policyCases.filter(({ name }) => mode.match.test(name));
  if (found.length === 0) throw new Error(`no golden case matches ${String(mode.match)}`);
  return found.map((golden) => ({ name: golden.name, golden, mode }));
});

describe.each(implementations)('$name', ({ binding, backend }) => {
  test.each(cases)('golden $name', ({ golden: { args, inputs, outputs }, mode }) => {
    const mask = inputs['response_mask'] ?? inputs['completion_mask']!;
    const perRollout = inputs['advantages_per_rollout'] as unknown as number[] | undefined;
    const advantages = perRollout
      ? mask.map((row, b) => row.map(() => perRollout[b]!))
      : inputs['advantages']!;
    const old = inputs['old_log_prob']!;
    const options: PolicyLossOptions = {
      clipLow: 0.2,
      clipHigh: 0.2,
      truncation: Infinity,
      normaliser: 1,
      ...mode.options(args),
    };
    const input: PolicyLossInput = {
      logp_T: flat(inputs['log_prob']!),
      logpOld_T: flat(old),
      logpRollout_T: flat(options.importance === 'mask' ? inputs['rollout_log_prob']! : old),
      advantages_T: flat(advantages),
      mask_T: flat(weights(mask, mode.averaging(args))),
      sequenceOffset_S1: Int32Array.from({ length: mask.length + 1 }, (_, b) => b * mask[0]!.length),
      ...(inputs['ref_log_prob'] ? { logpRef_T: flat(inputs['ref_log_prob']) } : {}),
    };
    const result = binding.policyLoss(input, options, backend);
    const scale = Math.max(1, Math.abs(outputs.loss));
    close(result.gradLogp_T, outputs.grad_log_prob.flat(), 'grad', 1e-6 * scale);
    close([result.loss], [outputs.loss], 'loss', 2e-6 * scale);
  });

  // Alone: no advantage, no weight, coefficient 1.
  const klCases = read('kl.json').filter(({ name }) => /^verl\/[^/]+\/(k1|k2|k3)$/.test(name));
  test.each(klCases)('golden kl $name', ({ name, inputs, outputs }) => {
    const kl = name.slice(-2) as 'k1' | 'k2' | 'k3';
    const logp = inputs['log_prob']!.flat();
    const ref = inputs['ref_log_prob']!.flat();
    const ones = new Float32Array(logp.length).fill(1);
    const input = {
      logp_T: Float32Array.from(logp),
      logpOld_T: Float32Array.from(logp),
      logpRollout_T: Float32Array.from(logp),
      logpRef_T: Float32Array.from(ref),
      advantages_T: new Float32Array(logp.length),
      mask_T: ones,
    };
    // verl clamps the log-ratio only for k3, and the k3 value to 10.
    const logRatioMax = kl === 'k3' ? 20 : 80;
    const options: PolicyLossOptions = {
      clipLow: 0.2,
      clipHigh: 0.2,
      truncation: Infinity,
      normaliser: 1,
      kl,
      klCoef: 1,
      klMax: 10,
      logRatioMax,
    };
    const result = binding.policyLoss(input, options, backend);
    // k3 of log-ratios rounded to float32 near 0.
    close(result.gradLogp_T, outputs.grad_log_prob_of_sum.flat(), 'grad', 5e-6);
    close(
      [result.stats.refKl * logp.length],
      [outputs.kl.flat().reduce((a, b) => a + b, 0)],
      'kl',
      5e-6 * logp.length,
    );
  });
});
