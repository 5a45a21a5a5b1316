import { setTimeout as sleep } from 'node:timers/promises';
import { TreewardError } from '@treeward/base';
import type { ChatReply, ChatRequest, Engine, EngineFacts, SampleRequest, Sampled } from '@treeward/policy';
import type { CallStop } from './call-stop.js';

/** An engine that is starting, restarting or away answers with one of these. */
const OUTAGE = new Set([
  'RPC_E_UNREACHABLE',
  'ENGINE_E_NO_POLICY',
  'ENGINE_E_STALE',
  'ENGINE_E_CLOSED',
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
]);

/** Faults that no restart explains are tried this often: they may come again for ever. */
const STRANGE_TRIES = 3;

export interface SamplerLimits {
  /** How long a call waits for an engine that is away. */
  retryMs: number;
  /** How long one attempt may take. */
  attemptMs: number;
}

/** How long a stopped call waits for the tokens that were sampled so far. An engine that hangs gives none. */
const STOP_PATIENCE_MS = 2000;

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? '');

/** HTTP status that an upstream's error carries in its data; 0 when it carries none. */
const statusOf = (error: unknown): number =>
  TreewardError.isInstance(error) ? Number(error.data['status'] ?? 0) : 0;

const RETRIED_STATUS = new Set([408, 425, 429]);

function kindOf(error: unknown): 'outage' | 'final' | 'strange' {
  if (codeOf(error) === 'ENGINE_E_CHAT') return 'final';
  if (OUTAGE.has(codeOf(error))) return 'outage';
  const status = statusOf(error);
  if (status >= 500 || RETRIED_STATUS.has(status)) return 'outage';
  return status >= 400 ? 'final' : 'strange';
}

/** Asks the engine and keeps asking while it is away, so that a harness never sees a backend restart. */
export class Sampler {
  readonly #engine: Engine;
  readonly #limits: SamplerLimits;
  #facts: Promise<EngineFacts> | null = null;
  #known: EngineFacts | null = null;

  constructor(engine: Engine, limits: SamplerLimits) {
    this.#engine = engine;
    this.#limits = limits;
  }

  /** At once when they are known. Asked once for all rollouts, so no single caller's stop may end the asking; it ends that caller's wait. */
  facts(stop: CallStop): EngineFacts | Promise<EngineFacts> {
    if (this.#known) return this.#known;
    const asked = (this.#facts ??= this.#persist(async () => this.#engine.describe()));
    asked.then(
      (facts) => (this.#known = facts),
      () => {
        if (this.#facts === asked) this.#facts = null;
      },
    );
    return orStopped(asked, stop);
  }

  /**
   * @throws TreewardError ENGINE_E_CONTEXT at once; GATEWAY_E_ENGINE when the engine stays away or keeps failing; the
   * stop's reason when stopped
   */
  sample(request: SampleRequest, stop: CallStop): Promise<Sampled> {
    return this.#persist(async (attempt) => {
      const sampled = await this.#engine.sample('current', request, { signal: attempt });
      check(request, sampled);
      return sampled;
    }, stop);
  }

  /** @throws TreewardError as `sample`; GATEWAY_E_ENGINE for an engine that gives no ids and takes no messages */
  chat(request: ChatRequest, stop: CallStop): Promise<ChatReply> {
    return this.#persist(async (attempt) => {
      if (!this.#engine.chat) {
        throw new TreewardError('ENGINE_E_CHAT', 'the engine returns no ids and takes no messages');
      }
      return this.#engine.chat(request, { signal: attempt });
    }, stop);
  }

  async #persist<T>(work: (signal: AbortSignal) => Promise<T>, stop?: CallStop): Promise<T> {
    const deadline = Date.now() + this.#limits.retryMs;
    for (let tries = 1, strange = 0; ; tries++) {
      try {
        return await this.#attempt(work, stop);
      } catch (error) {
        if (stop?.reason) throw error;
        if (codeOf(error) === 'ENGINE_E_CONTEXT') throw error;
        const kind = kindOf(error);
        if (kind === 'strange') strange++;
        if (kind === 'final' || strange >= STRANGE_TRIES || Date.now() >= deadline) {
          throw new TreewardError(
            'GATEWAY_E_ENGINE',
            `the engine failed ${tries} times, last: ${codeOf(error)} ${error instanceof Error ? error.message : String(error)}`,
            { cause: error },
          );
        }
        const wait = Math.min(50 * 2 ** Math.min(tries, 5), Math.max(deadline - Date.now(), 1));
        await (stop ? orStopped(sleep(wait), stop) : sleep(wait));
      }
    }
  }

  /**
   * One try. An engine that says nothing is left after a while; when the caller stops, its signal ends the work, and
   * one that does not heed it is left too.
   */
  #attempt<T>(work: (signal: AbortSignal) => Promise<T>, stop?: CallStop): Promise<T> {
    const { attemptMs } = this.#limits;
    const ended = new AbortController();
    return new Promise<T>((resolve, reject) => {
      const leave = (error: Error): void => {
        over();
        ended.abort(error);
        reject(error);
      };
      let timer = setTimeout(
        () => leave(new TreewardError('GATEWAY_E_ENGINE_SLOW', `no answer within ${attemptMs} ms`)),
        attemptMs,
      );
      const forget = stop?.onStop((reason) => {
        ended.abort(reason);
        clearTimeout(timer);
        timer = setTimeout(() => leave(reason), STOP_PATIENCE_MS);
      });
      const over = (): void => {
        clearTimeout(timer);
        forget?.();
      };
      work(ended.signal).then(
        (value) => {
          over();
          resolve(value);
        },
        (error: unknown) => {
          over();
          reject(error as Error);
        },
      );
    });
  }
}

function orStopped<T>(work: Promise<T>, stop: CallStop): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const forget = stop.onStop(reject);
    work.then(resolve, reject).finally(forget);
  });
}

/** An answer that would spoil training is a fault, however well-formed it looks. */
function check(request: SampleRequest, sampled: Sampled): void {
  const fault = (message: string): TreewardError => new TreewardError('GATEWAY_E_SAMPLED', message);
  if (sampled.finish === 'error') throw fault('the engine reports a failed generation');
  if (sampled.logprobs.length !== sampled.tokens.length) {
    throw fault(`${sampled.tokens.length} tokens came with ${sampled.logprobs.length} logprobs`);
  }
  if (sampled.prompt === request.prompt) return;
  const bytes = (ids: Int32Array): Buffer => Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength);
  if (!bytes(sampled.prompt).equals(bytes(request.prompt))) {
    throw fault('the engine consumed another prompt than it was given');
  }
}
