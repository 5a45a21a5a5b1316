import { algorithmDefaults, methodPresets } from '@treeward/learner';
import { presets } from '@treeward/tree-recovery';
import { expect, it } from 'vitest';

// A name means one thing: what the learner does under it is what the tree's preset says of its credit.
const NORMALISER = { rloo: 'constant', grpo: 'rollout-mean' } as const;
const STD = { rloo: 'none', grpo: 'population' } as const;

it.each(Object.entries(presets))('the learner trains %s as its preset says', (name, { credit }) => {
  const { calls, algorithm } = methodPresets[name as keyof typeof methodPresets];
  expect(calls).toBe(name);
  expect(algorithm.type).toBe(credit.estimator);
  expect(NORMALISER[credit.estimator]).toBe(credit.normaliser);
  expect(STD[credit.estimator]).toBe(credit.std);
  if (credit.normaliser === 'constant') expect(algorithm).toHaveProperty('normTokens');
  else expect(algorithm).toMatchObject({ stdEps: expect.any(Number) as number });
});

it('the critic that treeward names is the one that ppo trains unless told otherwise', () => {
  const { order, critic, gamma, lambda } = algorithmDefaults.ppo;
  expect({ order, sees: critic, gamma, lambda }).toEqual(presets.treeward.credit.critic);
});
