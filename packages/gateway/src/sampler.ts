import { TreewardError } from '@treeward/base';
import type { Engine, EngineFacts, SampleRequest, Sampled } from '@treeward/policy';

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

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? '');

/** Asks the engine and keeps asking while it is away, so that a harness never sees a backend restart. */
export class Sampler {
  readonly #engine: Engine;
  readonly #retryMs: number;
  #facts: Promise<EngineFacts> | null = null;

  constructor(engine: Engine, retryMs: number) {
    this.#engine = engine;
    this.#retryMs = retryMs;
  }

  /** Asked once for all rollouts, so no single caller's signal may end the asking; it ends that caller's wait. */
  async facts(signal: AbortSignal): Promise<EngineFacts> {
    const asked = (this.#facts ??= this.#persist(() => this.#engine.describe()));
    asked.catch(() => {
      if (this.#facts === asked) this.#facts = null;
    });
    let stop: (() => void) | undefined;
    const stopped = new Promise<never>((_, reject) => {
      stop = () => reject(signal.reason as Error);
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    });
    try {
      return await Promise.race([asked, stopped]);
    } finally {
      signal.removeEventListener('abort', stop!);
    }
  }

  /**
   * @throws TreewardError ENGINE_E_CONTEXT at once; GATEWAY_E_ENGINE when the engine stays away or keeps failing; the
   * signal's reason when aborted
   */
  sample(request: SampleRequest, signal: AbortSignal): Promise<Sampled> {
    return this.#persist(async () => {
      const sampled = await this.#engine.sample('current', request, { signal });
      check(request, sampled);
      return sampled;
    }, signal);
  }

  async #persist<T>(attempt: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const deadline = Date.now() + this.#retryMs;
    for (let tries = 1, strange = 0; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (signal?.aborted) throw error;
        if (codeOf(error) === 'ENGINE_E_CONTEXT') throw error;
        if (!OUTAGE.has(codeOf(error))) strange++;
        if (strange >= STRANGE_TRIES || Date.now() >= deadline) {
          throw new TreewardError(
            'GATEWAY_E_ENGINE',
            `the engine failed ${tries} times, last: ${codeOf(error)} ${error instanceof Error ? error.message : String(error)}`,
            { cause: error },
          );
        }
        await pause(Math.min(50 * 2 ** Math.min(tries, 5), Math.max(deadline - Date.now(), 1)), signal);
      }
    }
  }
}

/** An answer that would spoil training is a fault, however well-formed it looks. */
function check(request: SampleRequest, sampled: Sampled): void {
  const fault = (message: string): TreewardError => new TreewardError('GATEWAY_E_SAMPLED', message);
  if (sampled.finish === 'error') throw fault('the engine reports a failed generation');
  if (sampled.logprobs.length !== sampled.tokens.length) {
    throw fault(`${sampled.tokens.length} tokens came with ${sampled.logprobs.length} logprobs`);
  }
  const bytes = (ids: Int32Array): Buffer => Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength);
  if (!bytes(sampled.prompt).equals(bytes(request.prompt))) {
    throw fault('the engine consumed another prompt than it was given');
  }
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal!.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
