import { randomUUID } from 'node:crypto';
import { rpcClient, serveRpc, TreewardError, type RpcServer } from '@treeward/base';
import type {
  ChatReply,
  ChatRequest,
  EffectiveSampling,
  Engine,
  EngineFacts,
  Policy,
  Sampled,
  SampleRequest,
  WeightsRef,
} from './types.js';

/** How long an abort waits for its call. Most such entries are of calls that have just ended. */
const EARLY_ABORT_MS = 10_000;

// Typed arrays travel as plain number arrays, and a NaN log-probability ("cannot say") as null.
interface WireRequest {
  callId: string;
  /** The caller's signal had fired before it asked. */
  aborted: boolean;
  policy: Policy | 'current';
  request: Omit<SampleRequest, 'prompt'> & { prompt: number[] };
}

interface WireSampled {
  prompt: number[];
  tokens: number[];
  logprobs: (number | null)[];
  sampling: EffectiveSampling;
  finish: Sampled['finish'];
  policy: Policy;
}

/** Offers an engine on a unix socket. The caller keeps the engine: closing the server does not close it. */
export function serveEngine(socketPath: string, engine: Engine): Promise<RpcServer> {
  const running = new Map<string, AbortController>();
  // An abort can overtake the call that it is for: the two come over different connections.
  const early = new Set<string>();
  return serveRpc(socketPath, {
    describe: () => engine.describe(),
    load: ({ policy, weights }: { policy: Policy; weights: WeightsRef }) => engine.load(policy, weights),
    sample: async ({ callId, aborted, policy, request }: WireRequest, { signal }): Promise<WireSampled> => {
      const abort = new AbortController();
      running.set(callId, abort);
      if (early.delete(callId) || aborted) abort.abort();
      try {
        const sampled = await engine.sample(
          policy,
          { ...request, prompt: Int32Array.from(request.prompt) },
          { signal: AbortSignal.any([signal, abort.signal]) },
        );
        return {
          ...sampled,
          prompt: [...sampled.prompt],
          tokens: [...sampled.tokens],
          logprobs: Array.from(sampled.logprobs, (value) => (Number.isNaN(value) ? null : value)),
        };
      } finally {
        running.delete(callId);
      }
    },
    chat: ({ request }: { request: ChatRequest }, { signal }) => {
      if (engine.chat) return engine.chat(request, { signal });
      throw new TreewardError('ENGINE_E_IDS_ONLY', 'this engine takes token ids, not messages');
    },
    abort: async ({ callId }: { callId: string }) => {
      const abort = running.get(callId);
      if (abort) return abort.abort();
      early.add(callId);
      setTimeout(() => early.delete(callId), EARLY_ABORT_MS).unref();
    },
  });
}

/**
 * The engine behind a socket. `close` ends this connection only; the engine belongs to its own process.
 *
 * @param options.retryFor milliseconds to wait for a process that is starting or restarting. Repeating a call is safe:
 * its seed is part of it. @default 0
 */
export function remoteEngine(socketPath: string, options: { retryFor?: number } = {}): Engine {
  const client = rpcClient(socketPath);
  const retry = { retryFor: options.retryFor ?? 0 };
  return {
    describe: () => client.call<EngineFacts>('describe', undefined, retry),
    load: async (policy, weights) => {
      await client.call('load', { policy, weights }, retry);
    },
    sample: async (policy, request, { signal } = {}) => {
      const callId = randomUUID();
      // Asked to stop rather than cut off, so that the tokens sampled so far come back. Cut off if nobody is there to ask.
      const cut = new AbortController();
      const onAbort = (): void => void client.call('abort', { callId }).catch(() => cut.abort());
      signal?.addEventListener('abort', onAbort, { once: true });
      try {
        const aborted = signal?.aborted ?? false;
        const wire: WireRequest = {
          callId,
          aborted,
          policy,
          request: { ...request, prompt: [...request.prompt] },
        };
        const sampled = await client.call<WireSampled>('sample', wire, { ...retry, signal: cut.signal });
        return {
          ...sampled,
          prompt: Int32Array.from(sampled.prompt),
          tokens: Int32Array.from(sampled.tokens),
          logprobs: Float32Array.from(sampled.logprobs, (value) => value ?? NaN),
        };
      } finally {
        signal?.removeEventListener('abort', onAbort);
      }
    },
    // Whether the engine behind the socket has it, its facts say.
    chat: (request, { signal } = {}) =>
      client.call<ChatReply>('chat', { request }, { ...retry, ...(signal ? { signal } : {}) }),
    close: async () => client.close(),
  };
}
