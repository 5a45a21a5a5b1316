import type { CriticLoss, PolicyLoss } from '../types.js';

/** What every policy algorithm can be told beside its own definition. */
interface CommonSettings {
  epochs: number;
  minibatches: number;
  /** Stop the epochs once a mini-batch's approx_kl exceeds this. 0 = never. */
  klStop: number;
  /** c in w = min(exp(logp_old − logp_rollout), c); `Infinity` leaves the weight whole. */
  truncation: number;
  importance: 'truncate' | 'mask' | 'off';
  /** Estimator and weight of the KL to the reference weights. */
  kl: 'k1' | 'k2' | 'k3';
  klCoef: number;
  entropyCoef: number;
  /** Updates after which a sampled token is too old to train. */
  staleness: number;
  /** Mean |logp_old − logp_rollout| above which an update is refused. */
  mismatchMax: number;
}

interface ClipSettings {
  clipLow: number;
  clipHigh: number;
}

/**
 * What a reward is compared with: the group's other rollouts, or what the workspace was worth when a call started, which takes
 * the group's place for every call where it is known (`callBaseline` of `packTrees`). Both are known before anything is sampled.
 */
type Baseline = 'group' | 'workspace-score';

/**
 * Leave-one-out baseline, no division by a spread, a constant normaliser: unbiased whatever the harness does (credit.md).
 */
interface Rloo extends CommonSettings, ClipSettings {
  type: 'rloo';
  baseline: Baseline;
  /** The normaliser is planned rollouts × this. */
  normTokens: number;
}

/** Mean and population std of the group; each rollout's mean over its tokens, then the mean over rollouts (DeepSeekMath). */
interface Grpo extends CommonSettings, ClipSettings {
  type: 'grpo';
  stdEps: number;
}

/** Group mean without std, constant normaliser. */
interface DrGrpo extends CommonSettings, ClipSettings {
  type: 'dr_grpo';
  baseline: Baseline;
  normTokens: number;
}

/** As grpo, but the mean over all tokens of the batch, a higher upper clip, groups of equal rewards left out. */
interface Dapo extends CommonSettings, ClipSettings {
  type: 'dapo';
  stdEps: number;
}

/** As grpo with one ratio per rollout: the geometric mean over its tokens. */
interface Gspo extends CommonSettings, ClipSettings {
  type: 'gspo';
  stdEps: number;
}

/** As grpo's advantage with −A·clip(r)·logp and the clipped ratio constant: no token loses its gradient. */
interface Cispo extends CommonSettings, ClipSettings {
  type: 'cispo';
  stdEps: number;
}

/** Advantages from a critic along the causal order of calls. */
interface Ppo extends CommonSettings, ClipSettings {
  type: 'ppo';
  /** What the critic sees: a call's own context, or everything that had finished before the call started. */
  critic: 'context' | 'history';
  order: 'chain' | 'lineage';
  gamma: number;
  /** Below 1 only with `history` and `lineage`: every other pair biases the gradient (recovery.md §5). */
  lambda: number;
  /** How far values may move within an update. */
  valueClip: number;
  /** Learning rate of a value model of its own. */
  valueLr: number;
  /** Weight of the value loss of a head on the policy's trunk. */
  valueCoef: number;
  normTokens: number;
}

interface Sft {
  type: 'sft';
}

export type PolicyAlgorithm = Rloo | Grpo | DrGrpo | Dapo | Gspo | Cispo | Ppo;
export type Algorithm = PolicyAlgorithm | Sft;

const common: CommonSettings = {
  epochs: 2,
  minibatches: 4,
  klStop: 0.03,
  truncation: 2,
  importance: 'truncate',
  kl: 'k3',
  klCoef: 0,
  entropyCoef: 0,
  staleness: Infinity,
  mismatchMax: 1,
};

/** One gradient step per batch of the sampling policy, as the papers' definitions assume. */
const published: CommonSettings = { ...common, epochs: 1, minibatches: 1, klStop: 0, importance: 'off' };
const symmetric: ClipSettings = { clipLow: 0.2, clipHigh: 0.2 };
const wide: ClipSettings = { clipLow: 0.2, clipHigh: 0.28 };

/** Settings of each algorithm: the first is tested on the main job, the grpo family is as published. */
export const algorithmDefaults: {
  readonly [A in Algorithm as A['type']]: A;
} = {
  rloo: { type: 'rloo', baseline: 'group', ...common, ...wide, normTokens: 40 },
  grpo: { type: 'grpo', ...published, ...symmetric, klCoef: 0.04, stdEps: 1e-6 },
  dr_grpo: { type: 'dr_grpo', baseline: 'group', ...published, ...symmetric, normTokens: 40 },
  dapo: { type: 'dapo', ...published, ...wide, minibatches: 4, stdEps: 1e-6 },
  gspo: { type: 'gspo', ...published, clipLow: 3e-4, clipHigh: 4e-4, minibatches: 4, stdEps: 1e-6 },
  cispo: { type: 'cispo', ...published, clipLow: 1, clipHigh: 4, minibatches: 4, stdEps: 1e-6 },
  ppo: {
    type: 'ppo',
    ...common,
    ...wide,
    critic: 'history',
    order: 'lineage',
    gamma: 1,
    lambda: 1,
    valueClip: Infinity,
    valueLr: 1e-3,
    valueCoef: 0.5,
    normTokens: 40,
  },
  sft: { type: 'sft' },
};

/** What an update is told. */
export type ResolvedLoss = Omit<PolicyLoss, 'seed'>;

/** The critic of a PPO run, also for a stage that trains it alone. */
export const criticLoss = (ppo: Ppo): CriticLoss => ({
  sees: ppo.critic,
  order: ppo.order,
  gamma: ppo.gamma,
  lambda: ppo.lambda,
  clip: ppo.valueClip,
  lr: ppo.valueLr,
  coef: ppo.valueCoef,
});
