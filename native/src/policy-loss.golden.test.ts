// Objectives, clipping, KL and importance weights against verl, TRL and OpenRLHF (datasets/golden/policy_loss.json, kl.json), through
// every implementation. How a library averages is a weight per token; where its convention differs, the option that reproduces
// it is in the table. Inputs are rounded to float32: rtol 1e-5, atol 1e-6.
import { describe, expect, test } from 'vitest';
import type { PolicyLossInput, PolicyLossOptions } from './index.js';
import { goldenCases } from './testing/golden.js';
import { implementations } from './testing/implementations.js';

type Matrix = number[][];
interface Case {
  name: string;
  args: Record<string, number | string | boolean | number[]>;
  inputs: Record<string, Matrix>;
  outputs: {
    loss: number;
    grad_log_prob: Matrix;
    clip_ratio?: number;
    rollout_is_weights: Matrix;
    metrics: Record<string, number>;
    kl: Matrix;
    grad_log_prob_of_sum: Matrix;
  };
}
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
function weights(mask: Matrix, mode: string, longest = mask[0]!.length): Matrix {
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
        case 'all-rows-constant':
          return 1 / (mask.length * longest);
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
  /** Of the rollout, where it is not the old one. */
  rollout?: (inputs: Case['inputs']) => Matrix;
  /** −A log p, weighted: its gradient is that of a ratio of 1, its value is another. */
  reinforce?: true;
}
/** Log-probabilities of a rollout for which exp(old − rollout) is the given weight; a weight of 0 is left to `weightless`. */
const rolloutFor = (old: Matrix, weight: Matrix): Matrix =>
  old.map((row, b) => row.map((x, t) => x - Math.log(weight[b]![t] || 1)));
const givenWeights = (inputs: Case['inputs']): Matrix | undefined =>
  inputs['rollout_is_weights'] ?? inputs['importance_sampling_ratio'];
const bounds = (args: Case['args']): Partial<PolicyLossOptions> => {
  const [importanceLow, truncation] = args['is_correction_threshold'] as number[];
  return { importanceLow: importanceLow!, truncation: truncation! };
};
const ofRollout = (inputs: Case['inputs']): Matrix => inputs['rollout_log_prob']!;
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
    match: /^ppo_clip(\/|_advantage)/,
    averaging: verlAveraging,
    options: (a) => ({ ...verlClip(a), dualClip: a['clip_ratio_c'] as number }),
  },
  {
    match: /^ppo_clip_with_rollout_is/,
    averaging: verlAveraging,
    options: (a) => ({ ...verlClip(a), dualClip: a['clip_ratio_c'] as number }),
    rollout: (inputs) => rolloutFor(inputs['old_log_prob']!, givenWeights(inputs)!),
  },
  { match: /^gpg_reinforce/, averaging: verlAveraging, options: () => ({}), reinforce: true },
  // Its `old` is the rollout's.
  {
    match: /^bypass_reinforce_tis/,
    averaging: verlAveraging,
    options: (a) => ({ truncation: a['rollout_is_threshold'] as number }),
    rollout: (inputs) => inputs['old_log_prob']!,
    reinforce: true,
  },
  {
    match: /^gspo/,
    averaging: verlAveraging,
    options: (a) => ({ ...verlClip(a), objective: 'gspo', logRatioMax: 10 }),
  },
  { match: /^cispo/, averaging: verlAveraging, options: (a) => ({ ...verlClip(a), objective: 'cispo' }) },
  { match: /^openrlhf\/ppo$/, averaging: () => 'token-mean', options: openrlhfClip },
  {
    match: /^openrlhf\/is_correction_level=token,is_correction_mode=clip/,
    averaging: () => 'token-mean',
    options: (a) => ({ ...openrlhfClip(a), ...bounds(a) }),
    rollout: ofRollout,
  },
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
    options: (a) => ({ ...openrlhfClip(a), ...bounds(a), importance: 'mask' }),
    rollout: ofRollout,
  },
  // A constant, the batch's tokens, or each rollout's own length.
  { match: /^trl\/dr_grpo$/, averaging: () => 'all-rows-constant', options: trlClip },
  { match: /^trl\/(bnpo|dapo)$/, averaging: () => 'token-mean', options: trlClip },
  { match: /^trl\/grpo$/, averaging: () => 'all-rows-token-mean', options: trlClip },
  {
    match: /^trl\/dapo_with_is_ratio$/,
    averaging: () => 'token-mean',
    options: trlClip,
    rollout: (inputs) => rolloutFor(inputs['old_log_prob']!, givenWeights(inputs)!),
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

const all = goldenCases<Case>('policy_loss.json');
const rolloutWeights = all.filter(({ name }) => name.startsWith('rollout_is/'));
const cases = all
  .filter((golden) => !rolloutWeights.includes(golden))
  .map((golden) => {
    const [mode, second] = modes.filter(({ match }) => match.test(golden.name));
    if (!mode || second) throw new Error(`${golden.name}: ${mode ? 'two modes' : 'no mode'}`);
    return { name: golden.name, golden, mode };
  });

describe.each(implementations)('$name', ({ binding, backend }) => {
  test.each(cases)('golden $name', ({ golden: { args, inputs, outputs }, mode }) => {
    const mask = inputs['response_mask'] ?? inputs['completion_mask']!;
    const perRollout = inputs['advantages_per_rollout'] as unknown as number[] | undefined;
    const advantages = perRollout
      ? mask.map((row, b) => row.map(() => perRollout[b]!))
      : inputs['advantages']!;
    const old = mode.reinforce ? inputs['log_prob']! : inputs['old_log_prob']!;
    const rollout_T = flat(mode.rollout?.(inputs) ?? old);
    const given = givenWeights(inputs);
    const weightless = mask.map((row, b) => row.map((m, t) => (given?.[b]![t] === 0 ? 0 : m)));
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
      logpRollout_T: rollout_T,
      advantages_T: flat(advantages),
      // A weight of 0 leaves the token out, but it counts in the average.
      mask_T: flat(
        weights(mask, mode.averaging(args), args['max_completion_length'] as number | undefined).map(
          (row, b) => row.map((w, t) => w * weightless[b]![t]!),
        ),
      ),
      sequenceOffset_S1: Int32Array.from({ length: mask.length + 1 }, (_, b) => b * mask[0]!.length),
      ...(inputs['ref_log_prob'] ? { logpRef_T: flat(inputs['ref_log_prob']) } : {}),
    };
    const result = binding.policyLoss(input, options, backend);
    const scale = Math.max(1, Math.abs(outputs.loss));
    close(result.gradLogp_T, outputs.grad_log_prob.flat(), 'grad', 1e-6 * scale);
    if (!mode.reinforce) close([result.loss], [outputs.loss], 'loss', 2e-6 * scale);
    if (outputs.clip_ratio !== undefined && options.objective === undefined && options.dualClip === undefined)
      close([result.stats.clipfrac], [outputs.clip_ratio], 'clipfrac');
  });

  test.each(rolloutWeights)('golden $name: weights and statistics', ({ args, inputs, outputs }) => {
    const mask_T = flat(inputs['response_mask']!);
    const old_T = flat(inputs['old_log_prob']!);
    const [low, high] = String(args['rollout_is_threshold']).split('_').map(Number);
    // On policy with advantage −1 and normaliser 1 the gradient is the weight itself.
    const result = binding.policyLoss(
      {
        logp_T: old_T,
        logpOld_T: old_T,
        logpRollout_T: flat(inputs['rollout_log_prob']!),
        advantages_T: mask_T.map(() => -1),
        mask_T,
      },
      {
        clipLow: 0.2,
        clipHigh: 0.2,
        normaliser: 1,
        ...(high === undefined
          ? { truncation: low! }
          : { importance: 'mask', importanceLow: low!, truncation: high }),
      },
      backend,
    );
    close(result.gradLogp_T, outputs.rollout_is_weights.flat(), 'weight');
    close([result.stats.ess], [outputs.metrics['rollout_is_eff_sample_size']!], 'ess');
    close(
      [result.stats.truncatedFrac],
      [outputs.metrics['rollout_is_ratio_fraction_high']!],
      'truncatedFrac',
    );
  });

  // Alone: no advantage, no weight, coefficient 1.
  test.each(goldenCases<Case>('kl.json'))('golden kl $name', ({ name, inputs, outputs }) => {
    const kl = /k[123]/.exec(name)![0] as 'k1' | 'k2' | 'k3';
    const isVerl = name.startsWith('verl/');
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
    // verl clamps the log-ratio only for k3, and the k3 value to 10; OpenRLHF the value of every estimate, which for k1 is the ratio.
    const logRatioMax = kl === 'k3' ? 20 : isVerl ? 80 : 10;
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
