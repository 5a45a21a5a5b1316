// The committed vectors of other libraries (datasets/golden) as this package's tests take them: every case of a file is tested,
// or stands here with the reason why it is not. So a file that is made anew with more cases cannot go unnoticed.
import { readFileSync } from 'node:fs';

/** What is not asked of the operators, by file. A pattern that no case matches any more is an error. */
const LEFT_OUT: Record<string, readonly (readonly [RegExp, string])[]> = {
  'adamw.json': [],
  'gae.json': [[/lambda_per_step$/, 'one lambda for a call of the operator, not one per token']],
  'kl.json': [
    [/\/(abs|k1\+|k3\+)$/, 'an estimate, or a gradient of another one, that is not offered'],
    [/unbiased_gradient=True$/, 'a gradient weighted by the ratio is not offered'],
    [/^openrlhf\/extreme_row0\/k2/, 'clamps the value of k2, which only k3 has here (as in verl)'],
  ],
  'logprob_entropy.json': [
    [
      /^v17_inf_mask\/temperature=1.0\/(trl|verl)$/,
      'NaN entropies at −Infinity: the torch case says what is right',
    ],
  ],
  'loss_aggregation.json': [],
  'policy_loss.json': [
    [/^(gmpo_geo_mean|sapo|trl\/luspo_sequence|trl\/vespo)$/, 'an objective that is not offered'],
    [/^rollout_is\/sequence|is_correction_level=seq/, 'importance weights are per token'],
    [/^rollout_is\/token.*batch_norm=True$/, 'importance weights are not normalised over a batch'],
    [
      /^rollout_rs|gating=binary_kl|^trl\/grpo_opsm/,
      'tokens are rejected by their weight, not by a KL estimate',
    ],
    [/bias_corrected_kl$/, 'a KL term weighted by the ratio is not offered'],
    [
      /^openrlhf\/policy_loss_type=gspo$/,
      'spreads a sum of advantages over a sequence; here, as in verl, each token keeps its own',
    ],
  ],
  'tree_credit.json': [
    [/\/weights$/, 'the trees themselves, which the other cases refer to'],
    [/\/max\/gamma/, 'chooses its successor by value: no fixed order of calls'],
    [/\/linearised_paths\/gamma/, 'one result per path: what `uniform` averages'],
  ],
  'value_loss.json': [],
};

/** All cases of a golden file that are not left out above. */
export function goldenCases<Case extends { name: string }>(file: string): Case[] {
  return allCases<Case>(file).filter(({ name }) => !LEFT_OUT[file]!.some(([pattern]) => pattern.test(name)));
}

/** All cases of a golden file, of which the left-out ones may be what others refer to. */
export function allCases<Case extends { name: string }>(file: string): Case[] {
  const { cases } = JSON.parse(
    readFileSync(new URL(`../../../datasets/golden/${file}`, import.meta.url), 'utf8'),
  ) as { cases: Case[] };
  for (const [pattern, reason] of LEFT_OUT[file]!)
    if (!cases.some(({ name }) => pattern.test(name)))
      throw new Error(`${file}: no case matches ${String(pattern)} (${reason})`);
  return cases;
}
