import { TreewardError } from '@treeward/base';
import type { GroupOptions } from './group-advantages.js';
import { criticLoss, type PolicyAlgorithm, type ResolvedLoss } from './algorithm.js';

export interface ResolvedAlgorithm {
  /** How rewards become advantages; null: a critic does it. */
  group: GroupOptions | null;
  /** Whether a grade of the workspace at each call takes the place of the group's baseline. */
  workspaceScore: boolean;
  loss: ResolvedLoss;
}

/**
 * An algorithm as settings of the group estimator and of the learner's loss.
 *
 * @param planned rollouts of a batch, whether or not they end well: what a constant normaliser counts
 * @throws TreewardError LEARNER_E_ALGORITHM on settings that contradict each other
 */
export function resolveAlgorithm(algorithm: PolicyAlgorithm, planned: number): ResolvedAlgorithm {
  const { epochs, minibatches, klStop, truncation, importance, kl, klCoef, entropyCoef } = algorithm;
  const { clipLow, clipHigh, staleness, mismatchMax } = algorithm;
  const loss = {
    kind: 'policy' as const,
    ...{ clipLow, clipHigh, truncation, importance, epochs, minibatches, klStop },
    ...{ kl: klCoef === 0 ? ('none' as const) : kl, klCoef, entropyCoef, staleness, mismatchMax },
  };
  const workspaceScore = 'baseline' in algorithm && algorithm.baseline === 'workspace-score';
  switch (algorithm.type) {
    case 'rloo':
      return {
        group: { estimator: 'rloo' },
        workspaceScore,
        loss: { ...loss, normaliser: planned * algorithm.normTokens },
      };
    case 'dr_grpo':
      return {
        group: { estimator: 'grpo-no-std' },
        workspaceScore,
        loss: { ...loss, normaliser: planned * algorithm.normTokens },
      };
    case 'grpo':
      return { group: grpo(algorithm), workspaceScore, loss: { ...loss, normaliser: 'rollout-mean' } };
    case 'dapo':
      return { group: grpo(algorithm), workspaceScore, loss: { ...loss, normaliser: 'batch-tokens' } };
    case 'gspo':
      return {
        group: grpo(algorithm),
        workspaceScore,
        loss: { ...loss, objective: 'gspo', normaliser: 'rollout-mean' },
      };
    case 'cispo':
      return {
        group: grpo(algorithm),
        workspaceScore,
        loss: { ...loss, objective: 'cispo', normaliser: 'batch-tokens' },
      };
    case 'ppo': {
      const { critic, order, lambda, normTokens } = algorithm;
      if (lambda < 1 && (critic !== 'history' || order !== 'lineage')) {
        throw new TreewardError(
          'LEARNER_E_ALGORITHM',
          `ppo: lambda ${lambda} with a ${critic} critic along ${order} biases the gradient`,
          {
            data: { critic, order, lambda },
            hints: ['lambda = 1 is right with every critic', "below 1: critic 'history' and order 'lineage'"],
          },
        );
      }
      return {
        group: null,
        workspaceScore,
        loss: { ...loss, normaliser: planned * normTokens, critic: criticLoss(algorithm) },
      };
    }
  }
}

const grpo = ({ stdEps }: { stdEps: number }): GroupOptions => ({ estimator: 'grpo', eps: stdEps });
