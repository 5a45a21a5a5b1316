import { TreewardError } from '@treeward/base';
import type { CanonicalRequest, ReplyPart, Usage } from '@treeward/messages';
import type { ChatTemplate, EngineFacts, Policy, Sampled } from '@treeward/policy';
import type { CallStop } from './call-stop.js';
import { resolveSampling, unmet, upstreamSampling } from './effective-sampling.js';
import type { Sampler } from './sampler.js';
import type { OpenEndpoint } from './types.js';

/** What the engine made of a call. */
export interface Turn {
  /** At least one. Tool calls have no id yet. */
  parts: ReplyPart[];
  malformed?: string;
  tokens: Int32Array;
  logprobs: Float32Array;
  /** The ids were made from an upstream's text. */
  surrogate: boolean;
  finish: Sampled['finish'];
  policy: Policy;
  /** As the record keeps it: what was sampled with, and `notFollowed`, the request's wishes that were not met. */
  sampling: object;
  usage: Usage;
}

/** One call, as far as an engine has to know it. */
export interface Asked {
  endpoint: OpenEndpoint;
  call: number;
  request: CanonicalRequest;
  prompt: Int32Array;
}

/**
 * Asks the engine: by ids where it takes and gives them, by messages where it is an upstream that has only text.
 * @throws TreewardError ENGINE_E_CONTEXT when the prompt leaves no room for a reply, and what `Sampler` lists
 */
export function askEngine(
  asked: Asked,
  { sampler, template }: { sampler: Sampler; template: ChatTemplate },
  facts: EngineFacts,
  stop: CallStop,
): Promise<Turn> {
  return facts.ids ? byIds(asked, sampler, template, facts, stop) : byText(asked, sampler, template, stop);
}

async function byIds(
  { endpoint, call, request, prompt }: Asked,
  sampler: Sampler,
  template: ChatTemplate,
  { contextLength }: EngineFacts,
  stop: CallStop,
): Promise<Turn> {
  const room = contextLength - prompt.length;
  if (room < 1) {
    throw new TreewardError('ENGINE_E_CONTEXT', `${prompt.length} tokens leave no room in ${contextLength}`);
  }
  const resolved = resolveSampling(endpoint, request.requested, room);
  const { temperature, topP, topK, maxTokens } = resolved;
  const { bannedIds, stopIds } = template;
  const { tokens, logprobs, finish, policy, sampling } = await sampler.sample(
    {
      prompt,
      stopIds,
      sampling: { temperature, topP, topK, maxTokens, bannedIds, seed: `${endpoint.seed}/${call}` },
      tag: endpoint.rolloutId,
    },
    stop,
  );
  const { parts, malformed } = template.parse(tokens);
  const turn: Turn = {
    parts: parts.length > 0 ? parts : [{ type: 'text', text: template.decode(tokens) }],
    tokens,
    logprobs,
    surrogate: false,
    finish,
    policy,
    sampling: noting(sampling, resolved.notFollowed),
    usage: { promptTokens: prompt.length, completionTokens: tokens.length },
  };
  if (malformed !== undefined) turn.malformed = malformed;
  return turn;
}

/** The upstream sees what the harness said, not its canonical form. */
async function byText(
  { endpoint, request }: Asked,
  sampler: Sampler,
  template: ChatTemplate,
  stop: CallStop,
): Promise<Turn> {
  const ask = upstreamSampling(endpoint, request.requested);
  const { messages, tools } = request;
  const reply = await sampler.chat({ messages, tools, sampling: ask, tag: endpoint.rolloutId }, stop);
  // An engine may have left out what its upstream does not take.
  const used = reply.sampling ?? ask;
  const parts: ReplyPart[] = reply.parts.length > 0 ? reply.parts : [{ type: 'text', text: '' }];
  const tokens = template.reply(parts);
  return {
    parts,
    tokens,
    logprobs: new Float32Array(tokens.length).fill(Number.NaN),
    surrogate: true,
    finish: reply.finish,
    policy: { id: reply.model, version: 0 },
    sampling: noting(used, unmet(request.requested, used)),
    usage: reply.usage,
  };
}

const noting = (sampling: object, notFollowed: readonly string[]): object =>
  notFollowed.length > 0 ? { ...sampling, notFollowed } : sampling;
