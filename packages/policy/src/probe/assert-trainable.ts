import { TreewardError } from '@treeward/base';
import type { EffectiveSampling, EngineFacts } from '../types.js';

/**
 * Policy gradients divide by the probability with which each token was really drawn. Refuses an engine that cannot tell it under this
 * sampling.
 *
 * @throws TreewardError ENGINE_E_UNTRAINABLE naming every reason
 */
export function assertTrainable(
  facts: EngineFacts,
  sampling: Pick<EffectiveSampling, 'temperature'> &
    Partial<Pick<EffectiveSampling, 'topP' | 'topK' | 'bannedIds'>>,
): void {
  const { temperature, topP = 1, topK = 0, bannedIds = [] } = sampling;
  const reasons: string[] = [];
  if (!facts.ids) reasons.push('it returns no token ids');
  if (facts.logprobs === 'none') reasons.push('it returns no usable log-probabilities');
  if (facts.logprobs === 'raw') {
    const shaped = [
      ...(temperature === 1 ? [] : [`temperature ${temperature}`]),
      ...(topP >= 1 ? [] : [`topP ${topP}`]),
      ...(topK <= 0 ? [] : [`topK ${topK}`]),
      ...(bannedIds.length === 0 ? [] : ['banned ids']),
    ];
    if (shaped.length > 0) {
      reasons.push(
        `its log-probabilities are raw: they do not describe what is drawn under ${shaped.join(', ')}`,
      );
    }
  }
  if (facts.temperature === false && temperature !== 1) {
    reasons.push(`the temperature does not reach its sampler, and ${temperature} is asked for`);
  }
  if (reasons.length === 0) return;
  throw new TreewardError('ENGINE_E_UNTRAINABLE', `${facts.name} cannot train here: ${reasons.join('; ')}`, {
    data: { reasons, facts },
    hints: [
      'vLLM: start it with --logprobs-mode processed_logprobs and use mode = "completions"',
      'sample at temperature 1 without topK, topP and banned ids',
      'use the engine for recording and evaluation only',
    ],
  });
}
