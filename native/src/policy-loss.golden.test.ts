// The operator against verl, TRL and OpenRLHF, through datasets/golden/policy_loss.json.
//
// Tolerance: inputs are rounded to float32 (1.2e-7 relative, so up to 1e-6 on a log-probability of -12), hence rtol 1e-5 and
// atol 1e-6 on gradients and losses of order 1. The float64 accuracy of the kernel itself is tested in policy-loss.test.ts.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { policyLoss, type PolicyLossInput } from './index.js';

type Matrix = number[][];
interface Case {
  name: string;
  args: Record<string, unknown>;
  inputs: Record<string, Matrix>;
  outputs: Record<string, unknown>;
}

const golden = JSON.parse(
  readFileSync(new URL('../../datasets/golden/policy_loss.json', import.meta.url), 'utf8'),
) as { cases: Case[] };

const flat = (matrix: Matrix): Float32Array => Float32Array.from(matrix.flat());

function close(got: ArrayLike<number>, want: ArrayLike<number>, what: string): void {
  expect(got.length).toBe(want.length);
  for (let i = 0; i < want.length; i++) {
    const error = Math.abs(got[i]! - want[i]!);
    if (!(error <= 1e-6 + 1e-5 * Math.abs(want[i]!)))
      throw new Error(`${what}[${i}]: got ${got[i]}, want ${want[i]}`);
  }
}

/** A logpRollout_T for which min(exp(old − rollout), ∞) is the given weight. */
const rolloutFor = (old: Matrix, weights: Matrix): Matrix =>
  old.map((row, b) => row.map((x, t) => (weights[b]![t]! > 0 ? x - Math.log(weights[b]![t]!) : NaN)));

const matching = (pattern: RegExp): Case[] => {
  const cases = golden.cases.filter(({ name }) => pattern.test(name));
  if (cases.length === 0) throw new Error(`no golden case matches ${String(pattern)}`);
  return cases;
};

test.each(matching(/^ppo_clip/).filter(({ args }) => args['loss_agg_mode'] === 'token-mean'))(
  'verl $name',
  ({ args, inputs, outputs }) => {
    const { old_log_prob, log_prob, advantages, response_mask, rollout_is_weights } = inputs as Record<
      string,
      Matrix
    >;
    const perToken = (outputs['per_token_loss'] as Matrix).flat();
    // verl always adds a dual clip, which this operator does not have: leave out the tokens it touches.
    const kept_T = flat(response_mask!).map((m, t) => {
      const ratio = Math.exp(log_prob!.flat()[t]! - old_log_prob!.flat()[t]!);
      const dual = advantages!.flat()[t]! < 0 && ratio > (args['clip_ratio_c'] as number);
      return dual || rollout_is_weights?.flat()[t] === 0 ? 0 : m;
    });
    const normaliser = response_mask!.flat().reduce((a, b) => a + b, 0);
    const input: PolicyLossInput = {
      logp_T: flat(log_prob!),
      logpOld_T: flat(old_log_prob!),
      logpRollout_T: flat(rollout_is_weights ? rolloutFor(old_log_prob!, rollout_is_weights) : old_log_prob!),
      advantages_T: flat(advantages!),
      mask_T: kept_T,
    };
    const result = policyLoss(input, {
      clipLow: args['clip_ratio_low'] as number,
      clipHigh: args['clip_ratio_high'] as number,
      truncation: Infinity,
      normaliser,
    });
    const wantGrad = (outputs['grad_log_prob'] as Matrix).flat().map((g, t) => (kept_T[t] ? g : 0));
    close(result.gradLogp_T, wantGrad, 'grad');
    const wantLoss = perToken.reduce((sum, x, t) => sum + (kept_T[t] ? x : 0), 0) / normaliser;
    close([result.loss], [wantLoss], 'loss');
    expect(result.stats.tokens).toBe(kept_T.reduce((a, b) => a + b, 0));
  },
);

test.each(matching(/^ppo_clip\/.*seq-mean-token-sum$/))(
  'verl $name, as token weights',
  ({ inputs, outputs, args }) => {
    const kept = inputs['response_mask']!.map((row, b) =>
      row.map((m, t) => {
        const ratio = Math.exp(inputs['log_prob']![b]![t]! - inputs['old_log_prob']![b]![t]!);
        return inputs['advantages']![b]![t]! < 0 && ratio > (args['clip_ratio_c'] as number) ? 0 : m;
      }),
    );
    const rows = inputs['response_mask']!.filter((row) => row.some((m) => m > 0)).length;
    const { gradLogp_T } = policyLoss(
      {
        logp_T: flat(inputs['log_prob']!),
        logpOld_T: flat(inputs['old_log_prob']!),
        logpRollout_T: flat(inputs['old_log_prob']!),
        advantages_T: flat(inputs['advantages']!),
        mask_T: flat(kept.map((row) => row.map((m) => m / rows))),
      },
      { clipLow: 0.2, clipHigh: 0.28, truncation: Infinity, normaliser: 1 },
    );
    const want = (outputs['grad_log_prob'] as Matrix).map((row, b) =>
      row.map((g, t) => (kept[b]![t] ? g : 0)),
    );
    close(gradLogp_T, want.flat(), 'grad');
  },
);

test.each(matching(/^openrlhf\/ppo$|^openrlhf\/is_correction_level=token,is_correction_mode=clip/))(
  '$name',
  ({ args, inputs, outputs }) => {
    const bounds = args['is_correction_threshold'] as number[] | undefined;
    const mask_T = flat(inputs['response_mask']!);
    const result = policyLoss(
      {
        logp_T: flat(inputs['log_prob']!),
        logpOld_T: flat(inputs['old_log_prob']!),
        logpRollout_T: flat(inputs[bounds ? 'rollout_log_prob' : 'old_log_prob']!),
        advantages_T: flat(inputs['advantages']!),
        mask_T,
      },
      {
        clipLow: args['clip_eps_low'] as number,
        clipHigh: args['clip_eps_high'] as number,
        truncation: bounds ? bounds[1]! : Infinity,
        normaliser: mask_T.reduce((a, b) => a + b, 0),
      },
    );
    close(result.gradLogp_T, (outputs['grad_log_prob'] as Matrix).flat(), 'grad');
    close([result.loss], [outputs['loss'] as number], 'loss');
    close([result.stats.clipfrac], [outputs['clip_ratio'] as number], 'clipfrac');
  },
);

test.each(matching(/^trl\/(bnpo|dapo|dr_grpo|grpo|dapo_with_is_ratio)$/))(
  '$name',
  ({ name, inputs, outputs }) => {
    const mask = inputs['completion_mask']!;
    const advantage_B = inputs['advantages_per_rollout'] as unknown as number[];
    const old = inputs['old_log_prob']!;
    const weights = inputs['importance_sampling_ratio'];
    const total = mask.flat().reduce((a, b) => a + b, 0);
    const B = mask.length;
    // How each of TRL's loss types averages: a constant, the batch's tokens, or each rollout's own length.
    const constant = name === 'trl/dr_grpo' ? B * 8 : total;
    const perRow = mask.map((row) => {
      const length = row.reduce((a, b) => a + b, 0);
      return row.map((m) => (name === 'trl/grpo' ? (m * total) / (B * length) : m));
    });
    const mask_T = flat(perRow.map((row, b) => row.map((m, t) => (weights?.[b]![t] === 0 ? 0 : m))));
    const result = policyLoss(
      {
        logp_T: flat(inputs['log_prob']!),
        logpOld_T: flat(old),
        logpRollout_T: flat(weights ? rolloutFor(old, weights) : old),
        advantages_T: flat(mask.map((row, b) => row.map(() => advantage_B[b]!))),
        mask_T,
      },
      { clipLow: 0.2, clipHigh: 0.28, truncation: Infinity, normaliser: constant },
    );
    close(result.gradLogp_T, (outputs['grad_log_prob'] as Matrix).flat(), 'grad');
    close([result.loss], [outputs['loss'] as number], 'loss');
  },
);

test.each(matching(/^rollout_is\/token\/threshold=[\d.]+\/batch_norm=False$/))(
  'verl $name: weights and statistics',
  ({ args, inputs, outputs }) => {
    const mask_T = flat(inputs['response_mask']!);
    const old_T = flat(inputs['old_log_prob']!);
    // On policy with advantage −1 and normaliser 1 the gradient is the weight itself.
    const result = policyLoss(
      {
        logp_T: old_T,
        logpOld_T: old_T,
        logpRollout_T: flat(inputs['rollout_log_prob']!),
        advantages_T: mask_T.map(() => -1),
        mask_T,
      },
      { clipLow: 0.2, clipHigh: 0.2, truncation: args['rollout_is_threshold'] as number, normaliser: 1 },
    );
    close(result.gradLogp_T, (outputs['rollout_is_weights'] as Matrix).flat(), 'weight');
    const metrics = outputs['metrics'] as Record<string, number>;
    close([result.stats.ess], [metrics['rollout_is_eff_sample_size']!], 'ess');
    close([result.stats.truncatedFrac], [metrics['rollout_is_ratio_fraction_high']!], 'truncatedFrac');
  },
);
