import type { RequestedSampling } from '@treeward/messages';
import type { OpenEndpoint } from './types.js';

/** What is really sampled with, and which wishes of the request that leaves unmet (names of its fields). */
export interface ResolvedSampling {
  temperature: number;
  topP: number;
  topK: number;
  maxTokens: number;
  notFollowed: (keyof RequestedSampling)[];
}

/** What every engine takes; a wish outside is not followed, rather than failing the rollout. */
const VALID = {
  temperature: (value: number) => Number.isFinite(value) && value >= 0,
  topP: (value: number) => value > 0 && value <= 1,
  topK: (value: number) => Number.isInteger(value) && Math.abs(value) < 2 ** 31,
};

/** The request's token limit, a number of any kind, can only make the configured one smaller; `room` is what the window leaves. */
const limit = (configured: number, requested: number | undefined, room: number): number =>
  Math.max(1, Math.floor(Math.min(configured, requested ?? Infinity, room)));

/** For an engine that takes ids. It stops at the template's stop ids only and thinks as it was trained to: stop texts and effort are not followed. */
export function resolveSampling(
  { sampling, samplingFrom = 'config' }: Pick<OpenEndpoint, 'sampling' | 'samplingFrom'>,
  requested: RequestedSampling,
  room: number,
): ResolvedSampling {
  const choose = (name: 'temperature' | 'topP' | 'topK'): number => {
    const wish = requested[name];
    return samplingFrom === 'request' && wish !== undefined && VALID[name](wish) ? wish : sampling[name];
  };
  const effective = {
    temperature: choose('temperature'),
    topP: choose('topP'),
    topK: choose('topK'),
    maxTokens: limit(sampling.maxTokens, requested.maxTokens, room),
  };
  const names = ['temperature', 'topP', 'topK', 'maxTokens'] as const;
  const notFollowed: (keyof RequestedSampling)[] = names.filter(
    (name) => requested[name] !== undefined && requested[name] !== effective[name],
  );
  for (const name of ['stop', 'effort'] as const) if (requested[name]?.length) notFollowed.push(name);
  return { ...effective, notFollowed };
}

/** What an upstream that takes messages is asked for: with `request`, what the request says and nothing that it does not say. */
export function upstreamSampling(
  { sampling, samplingFrom = 'config' }: Pick<OpenEndpoint, 'sampling' | 'samplingFrom'>,
  requested: RequestedSampling,
): RequestedSampling {
  const maxTokens = limit(sampling.maxTokens, requested.maxTokens, Infinity);
  if (samplingFrom === 'request') return { ...requested, maxTokens };
  return {
    temperature: sampling.temperature,
    topP: sampling.topP,
    ...(sampling.topK > 0 && { topK: sampling.topK }),
    ...(sampling.effort !== undefined && { effort: sampling.effort }),
    maxTokens,
  };
}

/** Wishes of a request that what was used does not meet. */
export function unmet(requested: RequestedSampling, used: RequestedSampling): (keyof RequestedSampling)[] {
  return (Object.keys(requested) as (keyof RequestedSampling)[]).filter(
    (name) => requested[name] !== undefined && JSON.stringify(requested[name]) !== JSON.stringify(used[name]),
  );
}
