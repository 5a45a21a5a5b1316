import { z } from 'zod';
import { algorithmDefaults, methodPresets, type MethodPreset, type PolicyAlgorithm } from '@treeward/learner';

/** Keys that stand in every algorithm's table; defaults are that algorithm's own. */
const common = (d: PolicyAlgorithm) => ({
  /** Which calls train: all but side calls (`treeward`), or one path per epoch of the main agent (`clawgym2`). */
  calls: z.enum(['treeward', 'clawgym2']).default('treeward'),
  clip_low: z.number().min(0).max(1).default(d.clipLow),
  clip_high: z.number().min(0).default(d.clipHigh),
  /** c in w = min(exp(logp_old - logp_rollout), c). */
  truncation: z.number().gt(0).default(d.truncation),
  /** `mask`: weight 0 beyond `truncation`; `off`: weight 1. */
  importance: z.enum(['truncate', 'mask', 'off']).default(d.importance),
  epochs: z.number().int().min(1).default(d.epochs),
  minibatches: z.number().int().min(1).default(d.minibatches),
  /** Stop the epochs once approx_kl exceeds this. 0 = never. */
  kl_stop: z.number().min(0).default(d.klStop),
  /** KL to the checkpoint the run started from: estimator and weight. */
  kl: z.enum(['k1', 'k2', 'k3']).default(d.kl),
  kl_coef: z.number().min(0).default(d.klCoef),
  entropy_coef: z.number().min(0).default(d.entropyCoef),
  /** Updates after which a sampled token is too old to train; null: never. */
  staleness: z.number().int().min(0).nullable().default(null),
  /** Mean |logp_old - logp_rollout| above which the run stops. */
  mismatch_max: z.number().gt(0).default(d.mismatchMax),
});

const rewards = {
  /** `shuffled`: the control of an experiment. Rewards are permuted inside each group, so nothing can be learnt from them. */
  rewards: z.enum(['own', 'shuffled']).default('own'),
};
const normTokens = { norm_tokens: z.number().gt(0).default(algorithmDefaults.rloo.normTokens) };
const baseline = {
  /**
   * `workspace-score`: each call's reward is compared with what the workspace was worth when it arrived, graded after the
   * rollout (about one checker's run for every distinct state); where that is unknown, with the group.
   */
  baseline: z.enum(['group', 'workspace-score']).default(algorithmDefaults.rloo.baseline),
};
const stdEpsilon = { std_epsilon: z.number().gt(0).default(algorithmDefaults.grpo.stdEps) };
const { rloo, grpo, dr_grpo, dapo, gspo, cispo, ppo } = algorithmDefaults;

export const algoSchema = z.discriminatedUnion('type', [
  /** Leave-one-out baseline, constant normaliser: unbiased whatever the harness does (credit.md). */
  z.strictObject({ type: z.literal('rloo'), ...baseline, ...normTokens, ...rewards, ...common(rloo) }),
  /** The group estimators as their papers have them; every option's bias is in credit.md. */
  z.strictObject({ type: z.literal('grpo'), ...stdEpsilon, ...rewards, ...common(grpo) }),
  z.strictObject({ type: z.literal('dr_grpo'), ...baseline, ...normTokens, ...rewards, ...common(dr_grpo) }),
  z.strictObject({ type: z.literal('dapo'), ...stdEpsilon, ...rewards, ...common(dapo) }),
  z.strictObject({ type: z.literal('gspo'), ...stdEpsilon, ...rewards, ...common(gspo) }),
  z.strictObject({ type: z.literal('cispo'), ...stdEpsilon, ...rewards, ...common(cispo) }),
  /** Advantages from a critic along the causal order of calls. */
  z.strictObject({
    type: z.literal('ppo'),
    /** What the critic sees: its own context, or everything that had finished before the call started. */
    critic: z.enum(['context', 'history']).default(ppo.critic),
    order: z.enum(['chain', 'lineage']).default(ppo.order),
    /** `model`: a value model of its own; `head`: on the policy's trunk (context critics only). */
    value: z.enum(['model', 'head']).default('model'),
    gamma: z.number().min(0).max(1).default(ppo.gamma),
    /** Below 1 only with `history` and `lineage`. */
    lambda: z.number().min(0).max(1).default(ppo.lambda),
    value_clip: z.number().gt(0).nullable().default(null),
    value_lr: z.number().gt(0).default(ppo.valueLr),
    value_coef: z.number().gt(0).default(ppo.valueCoef),
    /** First steps that train the critic alone. */
    value_steps: z.number().int().min(0).default(1),
    value_epochs: z.number().int().min(1).default(4),
    ...normTokens,
    ...rewards,
    ...common(ppo),
  }),
  /** Methods by name: everything that defines them is fixed. */
  z.strictObject({ type: z.literal('treeward'), ...rewards }),
  z.strictObject({ type: z.literal('clawgym2'), ...rewards }),
]);

export type AlgoConfig = z.infer<typeof algoSchema>;

/** Whether rollouts that train are also graded as their calls found them. */
export const workspaceScore = (algo: AlgoConfig): boolean =>
  'baseline' in algo && algo.baseline === 'workspace-score';

/** The method that a config names: which calls train, and how. */
export function methodOf(algo: AlgoConfig): MethodPreset {
  if (algo.type === 'treeward' || algo.type === 'clawgym2') return methodPresets[algo.type];
  const shared = {
    clipLow: algo.clip_low,
    clipHigh: algo.clip_high,
    truncation: algo.truncation,
    importance: algo.importance,
    epochs: algo.epochs,
    minibatches: algo.minibatches,
    klStop: algo.kl_stop,
    kl: algo.kl,
    klCoef: algo.kl_coef,
    entropyCoef: algo.entropy_coef,
    staleness: algo.staleness ?? Infinity,
    mismatchMax: algo.mismatch_max,
  };
  switch (algo.type) {
    case 'rloo':
    case 'dr_grpo':
      return {
        calls: algo.calls,
        algorithm: {
          type: algo.type,
          baseline: algo.baseline,
          normTokens: algo.norm_tokens,
          ...shared,
        },
      };
    case 'ppo':
      return {
        calls: algo.calls,
        algorithm: {
          type: 'ppo',
          critic: algo.critic,
          order: algo.order,
          gamma: algo.gamma,
          lambda: algo.lambda,
          valueClip: algo.value_clip ?? Infinity,
          valueLr: algo.value_lr,
          valueCoef: algo.value_coef,
          normTokens: algo.norm_tokens,
          ...shared,
        },
      };
    default:
      return { calls: algo.calls, algorithm: { type: algo.type, stdEps: algo.std_epsilon, ...shared } };
  }
}
