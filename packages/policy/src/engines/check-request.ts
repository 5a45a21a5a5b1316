import { TreewardError } from '@treeward/base';
import type { Policy, SampleRequest } from '../types.js';

/**
 * What every engine refuses, in the same words, before anything is spent on a call.
 *
 * @throws TreewardError ENGINE_E_STALE, ENGINE_E_REQUEST, ENGINE_E_CONTEXT
 */
export function checkRequest(
  wanted: Policy | 'current',
  loaded: Policy,
  request: SampleRequest,
  limits: { contextLength: number; vocabSize: number },
): void {
  if (wanted !== 'current' && (wanted.id !== loaded.id || wanted.version !== loaded.version)) {
    throw new TreewardError(
      'ENGINE_E_STALE',
      `asked for policy ${wanted.id} version ${wanted.version}, loaded is ${loaded.id} version ${loaded.version}`,
      { data: { wanted, loaded } },
    );
  }
  const { prompt, sampling } = request;
  const bad = (field: string, why: string): TreewardError =>
    new TreewardError('ENGINE_E_REQUEST', `${field} ${why}`, { data: { field, tag: request.tag } });
  if (prompt.length === 0) throw bad('prompt', 'is empty');
  const stray = prompt.findIndex((id) => id < 0 || id >= limits.vocabSize);
  if (stray >= 0) {
    throw bad(`prompt[${stray}]`, `is ${prompt[stray]}, outside the vocabulary of ${limits.vocabSize}`);
  }
  if (!(Number.isInteger(sampling.maxTokens) && sampling.maxTokens > 0)) {
    throw bad('sampling.maxTokens', `is ${sampling.maxTokens}, expected a positive integer`);
  }
  if (!(sampling.temperature >= 0 && Number.isFinite(sampling.temperature))) {
    throw bad('sampling.temperature', `is ${sampling.temperature}, expected a number >= 0`);
  }
  if (!(sampling.topP > 0 && sampling.topP <= 1)) {
    throw bad('sampling.topP', `is ${sampling.topP}, expected a number in (0, 1]`);
  }
  if (!Number.isInteger(sampling.topK)) {
    throw bad('sampling.topK', `is ${sampling.topK}, expected an integer (0 or less: no limit)`);
  }
  if (prompt.length >= limits.contextLength) {
    throw new TreewardError(
      'ENGINE_E_CONTEXT',
      `prompt has ${prompt.length} tokens, the context holds ${limits.contextLength} including the reply`,
      {
        hints: ['raise engine.contextLength', 'shorten the task or its tool results'],
        data: {
          promptTokens: prompt.length,
          contextLength: limits.contextLength,
          maxTokens: sampling.maxTokens,
          tag: request.tag,
        },
      },
    );
  }
}
