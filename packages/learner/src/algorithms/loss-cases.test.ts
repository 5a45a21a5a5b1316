import { join } from 'node:path';
import { readJson } from '@treeward/base';
import { describe, expect, it } from 'vitest';
import { packRows } from '../testing/batches.js';
import { normaliserOf, tokenWeights } from '../update/normaliser.js';
import { policyObjective } from '../update/policy-objective.js';
import { algorithmDefaults, type PolicyAlgorithm } from './algorithm.js';
import { groupAdvantages } from './group-advantages.js';
import { methodPresets } from './presets.js';
import { resolveAlgorithm } from './resolve.js';

interface Cases {
  rewards: number[];
  planned: number;
  normTokens: number;
  rollouts: Record<'old' | 'logp' | 'rollout' | 'ref' | 'entropy', number[]>[];
  cases: Record<string, { loss: number; grad: number[][]; gradEntropy: number[][] }>;
}
const golden = readJson<Cases>(join(import.meta.dirname, '..', '__fixtures__', 'loss-cases.json'));
const { rloo, grpo, dr_grpo, dapo, gspo, cispo, ppo } = algorithmDefaults;

/** Loss and gradients that the learner computes for the fixture's group under an algorithm, as one mini-batch. */
function compute(algorithm: PolicyAlgorithm): { loss: number; grad: number[]; gradEntropy: number[] } {
  const { rollouts, rewards, planned } = golden;
  const { group, loss } = resolveAlgorithm({ ...algorithm, minibatches: 1 }, planned);
  const advantages = groupAdvantages(
    rewards,
    rewards.map(() => 'g'),
    group!,
  );
  // A context token before each rollout's tokens.
  const rows = rollouts.map(({ old }) => [0, ...old.map(() => 1)]);
  const packed = packRows(
    rows,
    rows.map((row, b) => row.map(() => advantages[b]!)),
  );
  const column = (name: keyof Cases['rollouts'][number]): Float32Array =>
    Float32Array.from(rollouts.flatMap((rollout) => [NaN, ...rollout[name]]));
  const batch = { ...packed, rolloutLogprobs_T: column('rollout') };
  const rollout_T = Int32Array.from(rows.flatMap((row, b) => row.map(() => b)));
  const source_M = Int32Array.from(batch.owned_T, (own, t) => (own ? t : -1)).filter((t) => t >= 0);
  const ofRollout = new Map(rows.map((_, b) => [b, [...source_M].filter((t) => rollout_T[t] === b)]));
  const terms = {
    batch,
    loss: { ...loss, seed: '' },
    advantages_T: batch.advantages_T,
    logpOld_T: column('old'),
    logpRef_T: column('ref'),
    weight_T: tokenWeights(loss, ofRollout, batch.tokens_T.length),
    rollout_T,
  };
  const take = (from: Float32Array): Float32Array => Float32Array.from(source_M, (t) => from[t]!);
  const { result, grads } = policyObjective(
    terms,
    normaliserOf(loss, source_M.length, rows.length),
    { logprobs_M: take(column('logp')), entropies_M: take(column('entropy')) },
    { source_M },
  );
  return {
    loss: result.loss,
    grad: [...grads.gradLogp_M],
    gradEntropy: [...(grads.gradEntropy_M ?? source_M.map(() => 0))],
  };
}

describe('losses as their papers state them, against torch autograd', () => {
  const norm = { normTokens: golden.normTokens };
  it.each<[string, PolicyAlgorithm]>([
    ['rloo', { ...rloo, ...norm }],
    ['grpo', grpo],
    ['dr_grpo', { ...dr_grpo, ...norm }],
    ['dapo', dapo],
    ['gspo', gspo],
    ['cispo', cispo],
    ['rloo_options', { ...rloo, ...norm, importance: 'mask', kl: 'k2', klCoef: 0.1, entropyCoef: 0.01 }],
  ])('%s', (name, algorithm) => {
    const want = golden.cases[name]!;
    const got = compute(algorithm);
    expect(Math.abs(got.loss - want.loss)).toBeLessThan(1e-6);
    want.grad.flat().forEach((g, m) => expect(Math.abs(got.grad[m]! - g)).toBeLessThan(1e-6));
    want.gradEntropy.flat().forEach((g, m) => expect(Math.abs(got.gradEntropy[m]! - g)).toBeLessThan(1e-7));
    expect(got.grad.some((g) => g !== 0)).toBe(true);
  });
});

describe('settings', () => {
  it('refuses lambda below 1 with a critic or an order that it biases', () => {
    for (const wrong of [{ critic: 'context' }, { order: 'chain' }] as const) {
      expect(() => resolveAlgorithm({ ...ppo, lambda: 0.95, ...wrong }, 4)).toThrow(/biases the gradient/);
      expect(resolveAlgorithm({ ...ppo, ...wrong }, 4).loss.critic!.lambda).toBe(1);
    }
    expect(resolveAlgorithm({ ...ppo, lambda: 0.95 }, 4).loss.critic).toMatchObject({ sees: 'history' });
  });

  it('a preset fixes everything that defines its method', () => {
    const { treeward, clawgym2 } = methodPresets;
    expect(resolveAlgorithm(treeward.algorithm, 48)).toMatchObject({
      group: { estimator: 'rloo' },
      loss: { normaliser: 48 * 40, importance: 'truncate', truncation: 2, epochs: 2, minibatches: 4 },
    });
    expect(resolveAlgorithm(clawgym2.algorithm, 48)).toMatchObject({
      group: { estimator: 'grpo' },
      loss: { normaliser: 'rollout-mean', kl: 'none', clipLow: 0.2, clipHigh: 0.2 },
    });
  });
});
