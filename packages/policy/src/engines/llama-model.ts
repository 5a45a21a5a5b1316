import type { Llama, LlamaContext, LlamaContextSequence, LlamaModel, Token, TokenBias } from 'node-llama-cpp';
import { randomStream, TreewardError } from '@treeward/base';
import type { Policy, Sampled, SampleRequest } from '../types.js';
import { commonPrefix, copyPrefix } from './prefix-copy.js';
import { SlotPool, type Slot } from './slot-pool.js';

/** Tokens per llama batch: one prefill of a short conversation, or one token of very many sequences. */
const BATCH_SIZE = 512;

/** llama.cpp reads 2^32 - 1 as "seed from the clock". */
const SEEDS = 0xffff_ffff;

/** Counted over all versions of the weights. */
export interface LlamaStats {
  calls: number;
  /** Of all prompts, wherever their keys and values came from. */
  promptTokens: number;
  /** Of these, found in the sequence that the rollout used before. */
  reusedTokens: number;
  /** Of these, copied from another sequence (a shared tool manifest, the same task). */
  copiedTokens: number;
  sampledTokens: number;
}

/** One version of the weights with its own context and sequences: a call that started here ends here. */
export class LlamaModelVersion {
  readonly policy: Policy;
  readonly vocabSize: number;
  readonly #model: LlamaModel;
  readonly #context: LlamaContext;
  readonly #contextLength: number;
  readonly #slots: SlotPool<LlamaContextSequence>;
  readonly #newBias: () => TokenBias;
  readonly #biases = new Map<string, TokenBias>();
  readonly #stats: LlamaStats;
  #calls = 0;
  #retired: (() => void) | null = null;

  private constructor(
    policy: Policy,
    model: LlamaModel,
    context: LlamaContext,
    contextLength: number,
    newBias: () => TokenBias,
    stats: LlamaStats,
  ) {
    this.policy = policy;
    this.#stats = stats;
    this.#newBias = newBias;
    this.#model = model;
    this.#context = context;
    this.#contextLength = contextLength;
    this.vocabSize = vocabSizeOf(model);
    this.#slots = new SlotPool(Array.from({ length: context.totalSequences }, () => context.getSequence()));
  }

  /** @throws TreewardError ENGINE_E_WEIGHTS when llama.cpp refuses the file */
  static async load(
    llama: Llama,
    policy: Policy,
    path: string,
    options: { contextLength: number; sequences: number; threads: number },
    stats: LlamaStats,
  ): Promise<LlamaModelVersion> {
    // In a process that has a `Llama` it is loaded already.
    const { TokenBias } = await import('node-llama-cpp');
    let model: LlamaModel | undefined;
    try {
      // Not memory-mapped: whoever published the file may replace or delete it once this has returned.
      model = await llama.loadModel({ modelPath: path, useMmap: false });
      const context = await model.createContext({
        // One more than the limit: at its last free position node-llama-cpp would shift the context, silently.
        contextSize: options.contextLength + 1,
        sequences: options.sequences,
        threads: options.threads,
        batchSize: BATCH_SIZE,
        // f32 keys and values without flash attention: as fast here as f16, and nearer to the learner's numbers.
        flashAttention: false,
        experimentalKvCacheKeyType: 'F32',
        experimentalKvCacheValueType: 'F32',
        failedCreationRemedy: false,
      });
      const loaded = model;
      const newBias = (): TokenBias => TokenBias.for(loaded);
      return new LlamaModelVersion({ ...policy }, model, context, options.contextLength, newBias, stats);
    } catch (cause) {
      await model?.dispose();
      throw new TreewardError(
        'ENGINE_E_WEIGHTS',
        `llama.cpp cannot use ${path}: ${(cause as Error).message}`,
        {
          cause,
          data: { file: path },
        },
      );
    }
  }

  async sample(request: SampleRequest, signal: AbortSignal): Promise<Sampled> {
    this.#calls++;
    try {
      const slot = await this.#slots.acquire(request.tag, signal);
      if (!slot) return this.#sampled(request, [], [], 'abort');
      try {
        return await this.#generate(slot, request, signal);
      } catch (error) {
        slot.cached = [];
        throw error;
      } finally {
        this.#slots.release(slot);
      }
    } finally {
      this.#calls--;
      if (this.#calls === 0) this.#retired?.();
    }
  }

  /** Frees the memory once the last call has ended. No call may start after this. */
  async retire(): Promise<void> {
    if (this.#calls > 0) await new Promise<void>((resolve) => (this.#retired = resolve));
    await this.#context.dispose();
    await this.#model.dispose();
  }

  async #generate(
    slot: Slot<LlamaContextSequence>,
    request: SampleRequest,
    signal: AbortSignal,
  ): Promise<Sampled> {
    const { prompt, sampling, stopIds } = request;
    const random = randomStream(sampling.seed);
    const options = {
      temperature: sampling.temperature,
      topK: Math.max(0, sampling.topK),
      topP: sampling.topP,
      tokenBias: this.#biasFor(sampling.bannedIds),
    };
    const tokens: number[] = [];
    const logprobs: number[] = [];
    let pending = await this.#keepPrefix(slot, prompt);
    this.#stats.calls++;
    this.#stats.promptTokens += prompt.length;
    while (!signal.aborted) {
      // Each token has its own seed out of this call's stream: what else runs at the same time cannot change a draw.
      const ask = {
        generateNext: { token: true, confidence: true, options: { ...options, seed: random.below(SEEDS) } },
      };
      const last = pending.length - 1;
      const input = pending.map((id, i) =>
        i === last ? ([id as Token, ask] as [Token, typeof ask]) : (id as Token),
      );
      const next = (await slot.sequence.controlledEvaluate(input))[last]?.next;
      for (const id of pending) slot.cached.push(id);
      // No token, or a probability that is not one: the weights are broken (NaN). Nothing of this call can be used.
      if (next?.token == null || !(next.confidence! > 0))
        return this.#sampled(request, tokens, logprobs, 'error');
      tokens.push(next.token);
      this.#stats.sampledTokens++;
      logprobs.push(Math.min(0, Math.log(next.confidence!)));
      if (stopIds.includes(next.token)) return this.#sampled(request, tokens, logprobs, 'stop');
      const full = prompt.length + tokens.length >= this.#contextLength;
      if (full || tokens.length >= sampling.maxTokens)
        return this.#sampled(request, tokens, logprobs, 'length');
      pending = [next.token];
    }
    return this.#sampled(request, tokens, logprobs, 'abort');
  }

  /** Drops from the cache what is not the start of `prompt`; returns what is left to evaluate (at least one token). */
  async #keepPrefix(slot: Slot<LlamaContextSequence>, prompt: Int32Array): Promise<number[]> {
    const { sequence } = slot;
    const own = commonPrefix(slot.cached, prompt, prompt.length - 1);
    const copied = await copyPrefix(slot, this.#slots.slots, prompt, own);
    const keep = copied ?? own;
    // By the sequence's own count: after an error it may hold more than `cached` admits.
    if (keep === 0) await sequence.clearHistory();
    else if (keep < sequence.nextTokenIndex) {
      await sequence.eraseContextTokenRanges([{ start: keep, end: sequence.nextTokenIndex }]);
    }
    slot.cached.length = keep;
    if (copied === null) this.#stats.reusedTokens += keep;
    else this.#stats.copiedTokens += keep;
    return [...prompt.subarray(keep)];
  }

  #biasFor(bannedIds: readonly number[]): TokenBias {
    const key = bannedIds.join();
    const known = this.#biases.get(key);
    if (known) return known;
    const bias = this.#newBias();
    for (const id of bannedIds) {
      // node-llama-cpp ignores a ban of these, which would leave the reported distribution wrong.
      if (this.#model.isEogToken(id as Token)) {
        throw new TreewardError(
          'ENGINE_E_REQUEST',
          `sampling.bannedIds has ${id}, which the weights file declares as an end-of-generation token`,
          { data: { field: 'sampling.bannedIds', id } },
        );
      }
      bias.set(id as Token, 'never');
    }
    this.#biases.set(key, bias);
    return bias;
  }

  #sampled(
    request: SampleRequest,
    tokens: readonly number[],
    logprobs: readonly number[],
    finish: Sampled['finish'],
  ): Sampled {
    return {
      prompt: request.prompt,
      tokens: Int32Array.from(tokens),
      logprobs: Float32Array.from(logprobs),
      sampling: request.sampling,
      finish,
      policy: this.policy,
    };
  }
}

function vocabSizeOf(model: LlamaModel): number {
  const embedding = model.fileInfo.fullTensorInfo?.find(({ name }) => name === 'token_embd.weight');
  const size = embedding?.dimensions[1];
  if (size === undefined) throw new Error('no tensor token_embd.weight');
  return Number(size);
}
