import { existsSync } from 'node:fs';
import type { Llama } from 'node-llama-cpp';
import { TreewardError } from '@treeward/base';
import type { Engine, EngineFacts, Policy, Sampled, SampleRequest, WeightsRef } from '../types.js';
import { checkRequest } from './check-request.js';
import { LlamaModelVersion, type LlamaStats } from './llama-model.js';

export interface LlamaEngineOptions {
  /** Tokens of prompt and reply together, per call. @default 768 */
  contextLength?: number;
  /** Calls decoded together; more calls wait. @default 8 */
  sequences?: number;
  /** More than one pays only on cores that nothing else uses. @default 1 */
  threads?: number;
}

/**
 * The embedded engine: llama.cpp in this process, on the CPU.
 *
 * The distribution a token is drawn from, and its log-probability reported: banned ids removed, then top-k, then top-p,
 * then divided by the temperature and renormalised. Temperature 0 takes the most likely token and reports its
 * log-probability under temperature 1.
 *
 * Use it only in the main thread of a process of its own (`engine-main.ts`): ending a worker thread while llama decodes
 * aborts the process.
 */
export class LlamaEngine implements Engine {
  readonly #options: Required<LlamaEngineOptions>;
  readonly #closing = new AbortController();
  readonly #retiring = new Set<Promise<void>>();
  readonly #stats: LlamaStats = {
    calls: 0,
    promptTokens: 0,
    reusedTokens: 0,
    copiedTokens: 0,
    sampledTokens: 0,
  };
  #llama: Promise<Llama> | null = null;
  #current: LlamaModelVersion | null = null;
  #loading: Promise<void> = Promise.resolve();

  /** @throws TreewardError ENGINE_E_CONFIG */
  constructor(options: LlamaEngineOptions = {}) {
    this.#options = { contextLength: 768, sequences: 8, threads: 1, ...options };
    for (const [field, value] of Object.entries(this.#options)) {
      if (!Number.isInteger(value) || value < 1) {
        throw new TreewardError(
          'ENGINE_E_CONFIG',
          `engine.${field} is ${value}, expected a positive integer`,
        );
      }
    }
  }

  /** `vocabSize` is 0 until weights are loaded. */
  async describe(): Promise<EngineFacts> {
    return {
      name: 'llama',
      ids: true,
      logprobs: 'processed',
      contextLength: this.#options.contextLength,
      vocabSize: this.#current?.vocabSize ?? 0,
      policy: this.#current?.policy ?? null,
    };
  }

  /** Since the engine was made. */
  stats(): LlamaStats {
    return { ...this.#stats };
  }

  /** Calls under way finish on the weights they started with. The file may be deleted once this has resolved. */
  load(policy: Policy, weights: WeightsRef): Promise<void> {
    // One after the other, so that the last call wins whatever the files' sizes.
    const load = this.#loading.then(() => this.#load(policy, weights));
    this.#loading = load.catch(() => undefined);
    return load;
  }

  async sample(
    policy: Policy | 'current',
    request: SampleRequest,
    options: { signal?: AbortSignal } = {},
  ): Promise<Sampled> {
    const version = this.#current;
    if (!version) {
      throw new TreewardError('ENGINE_E_NO_POLICY', 'no weights are loaded', {
        hints: ['call load() first'],
      });
    }
    checkRequest(policy, version.policy, request, {
      contextLength: this.#options.contextLength,
      vocabSize: version.vocabSize,
    });
    const signals = options.signal ? [options.signal, this.#closing.signal] : [this.#closing.signal];
    return version.sample(request, AbortSignal.any(signals));
  }

  /** Ends running calls as `abort` after their current token, then frees everything. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#loading;
    this.#retire();
    await Promise.all(this.#retiring);
    await (await this.#llama)?.dispose();
    this.#llama = null;
  }

  async #load(policy: Policy, weights: WeightsRef): Promise<void> {
    if (this.#closing.signal.aborted) throw new TreewardError('ENGINE_E_CLOSED', 'the engine is closed');
    if (weights.format !== 'gguf') {
      throw new TreewardError('ENGINE_E_WEIGHTS', `weights.format is ${weights.format}, expected gguf`);
    }
    if (!existsSync(weights.path)) {
      throw new TreewardError('FILE_E_MISSING', `cannot read ${weights.path}`, {
        data: { file: weights.path },
      });
    }
    this.#llama ??= startLlama(this.#options.threads);
    const loaded = await LlamaModelVersion.load(
      await this.#llama,
      policy,
      weights.path,
      this.#options,
      this.#stats,
    );
    this.#retire();
    this.#current = loaded;
  }

  #retire(): void {
    const old = this.#current;
    this.#current = null;
    if (!old) return;
    const retiring = old.retire().finally(() => this.#retiring.delete(retiring));
    this.#retiring.add(retiring);
  }
}

/** Loads the library only here: it costs a second of processor time, and most processes that know this class never sample. */
async function startLlama(maxThreads: number): Promise<Llama> {
  const { getLlama, LlamaLogLevel } = await import('node-llama-cpp');
  return getLlama({ gpu: false, build: 'never', logLevel: LlamaLogLevel.error, maxThreads });
}
