import type { RolloutTree, TreeCall } from './types.js';

export interface VerdictInput {
  hasStart: boolean;
  calls: readonly TreeCall[];
  reward: number | null;
  verifierError: { code: string; message: string } | null;
  status: RolloutTree['status'];
}

/** May this rollout stand in a batch? `partial`: yes, without the tokens whose calls say why they are left out. */
export function verdictOf(input: VerdictInput): RolloutTree['verdict'] {
  const rejected = (reason: string): RolloutTree['verdict'] => ({ kind: 'rejected', reason });
  if (!input.hasStart) return rejected('the record has no rollout.start');
  if (input.status === 'cancelled') return rejected('the rollout was cancelled');
  if (input.reward === null) {
    const { verifierError } = input;
    return rejected(
      verifierError ? `no reward: ${verifierError.code}: ${verifierError.message}` : 'no reward',
    );
  }
  // A call that sampled nothing has nothing to lose: it does not make a rollout partial.
  const sampled = input.calls.filter((call) => call.actionNode !== -1 || call.policyVersion !== null);
  const left = sampled.filter((call) => call.untrained !== null);
  if (left.length === sampled.length) {
    return rejected(sampled.length === 0 ? 'no tokens were sampled' : 'no call can be trained');
  }
  if (left.length === 0) return { kind: 'trainable', reason: null };
  const reasons = [...new Set(left.map((call) => call.untrained))].join('; ');
  return { kind: 'partial', reason: `${left.length} of ${sampled.length} calls left out: ${reasons}` };
}
