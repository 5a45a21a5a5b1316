import OpenAI from 'openai';
import { randomStream, TreewardError } from '@treeward/base';
import type { Engine, EngineFacts, Policy, Sampled, SampleRequest, WeightsRef } from '../types.js';
import { checkRequest } from './check-request.js';
import { badReply, isAbort, resolveUpstream, upstreamError, type UpstreamOptions } from './upstream.js';

export interface CompletionsEngineOptions extends UpstreamOptions {
  /** Up to and including `/v1`. */
  baseUrl: string;
  /**
   * May contain `{id}` and `{version}` of the policy: each version is then asked for under a name of its own (an adapter that the server
   * resolves), so that a call never mixes versions.
   */
  model: string;
  vocabSize: number;
  contextLength: number;
  /** What the server's log-probabilities mean, until a probe has measured it. vLLM: `--logprobs-mode`. @default 'raw' */
  logprobs?: 'processed' | 'raw';
}

/** vLLM's additions to the protocol. */
interface Choice {
  token_ids?: number[] | null;
  prompt_token_ids?: number[] | null;
  finish_reason: string | null;
  logprobs?: { token_logprobs?: (number | null)[] | null } | null;
}

/** As good as impossible to draw; the protocol has no stronger word. */
const BAN = -100;

/**
 * A server that takes token ids and returns ids with log-probabilities: vLLM's `/v1/completions` with `return_token_ids`. Such an engine
 * can train, if a probe finds that its log-probabilities are those of the distribution it drew from.
 */
export class CompletionsEngine implements Engine {
  readonly #options: CompletionsEngineOptions;
  readonly #client: OpenAI;
  readonly #apiKey: string;
  readonly #name: string;
  #policy: Policy | null = null;

  /** @throws TreewardError ENGINE_E_CONFIG */
  constructor(options: CompletionsEngineOptions) {
    this.#options = options;
    this.#name = `openai-compatible ${options.baseUrl}`;
    const upstream = resolveUpstream(options);
    this.#apiKey = upstream.apiKey;
    this.#client = new OpenAI({
      ...upstream,
      baseURL: options.baseUrl,
      organization: null,
      project: null,
      logLevel: 'off',
    });
  }

  async describe(): Promise<EngineFacts> {
    return {
      name: 'openai-compatible',
      ids: true,
      logprobs: this.#options.logprobs ?? 'raw',
      contextLength: this.#options.contextLength,
      vocabSize: this.#options.vocabSize,
      policy: this.#policy,
    };
  }

  /**
   * The server's weights are not ours to move: later calls ask for this version's model name. A version that is not part of the model's
   * name can only be version 0 of something fixed.
   *
   * @throws TreewardError ENGINE_E_WEIGHTS
   */
  async load(policy: Policy, weights: WeightsRef): Promise<void> {
    if (weights.format !== 'none') {
      throw new TreewardError('ENGINE_E_WEIGHTS', `weights.format is ${weights.format}, expected none`, {
        hints: ['publish the weights where the server finds them under the name of engine.model'],
      });
    }
    if (policy.version !== 0 && !this.#options.model.includes('{version}')) {
      throw new TreewardError(
        'ENGINE_E_WEIGHTS',
        `version ${policy.version} needs {version} in engine.model, which is ${this.#options.model}`,
        { data: { field: 'engine.model' } },
      );
    }
    this.#policy = { ...policy };
  }

  /** Aborted calls come back without tokens: the protocol gives none before the end. */
  async sample(
    policy: Policy | 'current',
    request: SampleRequest,
    options: { signal?: AbortSignal } = {},
  ): Promise<Sampled> {
    const answering = this.#policy;
    if (!answering) {
      throw new TreewardError('ENGINE_E_NO_POLICY', 'no policy is named', { hints: ['call load() first'] });
    }
    const { contextLength, vocabSize, model } = this.#options;
    checkRequest(policy, answering, request, { contextLength, vocabSize });
    const { prompt, sampling, stopIds } = request;
    const body = {
      model: model.replace('{id}', answering.id).replace('{version}', String(answering.version)),
      prompt: [...prompt],
      max_tokens: Math.min(sampling.maxTokens, contextLength - prompt.length),
      temperature: sampling.temperature,
      top_p: sampling.topP,
      top_k: sampling.topK > 0 ? sampling.topK : -1,
      seed: randomStream(sampling.seed).below(2 ** 31),
      logit_bias: Object.fromEntries(sampling.bannedIds.map((id) => [id, BAN])),
      logprobs: 0,
      return_token_ids: true,
      stop_token_ids: [...stopIds],
      ignore_eos: true,
    };
    const base = { prompt, sampling, policy: answering };
    try {
      const reply = await this.#client.completions.create(body as OpenAI.CompletionCreateParamsNonStreaming, {
        signal: options.signal,
      });
      return { ...base, ...this.#read(reply.choices[0] as unknown as Choice | undefined, request) };
    } catch (error) {
      if (isAbort(error)) {
        return { ...base, tokens: new Int32Array(0), logprobs: new Float32Array(0), finish: 'abort' };
      }
      throw upstreamError(error, this.#name, this.#apiKey);
    }
  }

  async close(): Promise<void> {
    this.#policy = null;
  }

  #read(
    choice: Choice | undefined,
    { prompt, stopIds }: SampleRequest,
  ): Pick<Sampled, 'tokens' | 'logprobs' | 'finish'> {
    const ids = choice?.token_ids;
    if (!choice || !Array.isArray(ids))
      throw badReply(this.#name, 'choices[0].token_ids', 'is missing: the server returns no ids');
    const echoed = choice.prompt_token_ids;
    if (echoed && (echoed.length !== prompt.length || echoed.some((id, i) => id !== prompt[i]))) {
      throw badReply(this.#name, 'choices[0].prompt_token_ids', 'differ from the prompt that was sent');
    }
    const stray = ids.findIndex((id) => !(Number.isInteger(id) && id >= 0 && id < this.#options.vocabSize));
    if (stray >= 0)
      throw badReply(
        this.#name,
        `choices[0].token_ids[${stray}]`,
        `is ${ids[stray]}, outside the vocabulary`,
      );
    const reported = choice.logprobs?.token_logprobs ?? [];
    const stopped = stopIds.includes(ids.at(-1) ?? -1);
    return {
      tokens: Int32Array.from(ids),
      logprobs: Float32Array.from(ids, (_, i) => Math.min(0, reported[i] ?? NaN)),
      finish: stopped ? 'stop' : choice.finish_reason === 'length' ? 'length' : 'error',
    };
  }
}
