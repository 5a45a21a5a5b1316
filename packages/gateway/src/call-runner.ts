import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { TreewardError } from '@treeward/base';
import {
  toolManifestHash,
  type CanonicalRequest,
  type Dialect,
  type Message,
  type ReplyPart,
} from '@treeward/messages';
import type { ChatTemplate, EffectiveSampling, ParsedReply, Sampled } from '@treeward/policy';
import type { RecordWriter } from '@treeward/telemetry';
import { Arrivals } from './arrivals.js';
import { CallRecorder, publicHeaders } from './call-recorder.js';
import { Conversation, type GrownPrompt } from './conversation.js';
import type { EncodedText } from './encoded-text.js';
import { Exchange, type ExchangeTiming, type Outcome } from './exchange.js';
import { readBody } from './read-body.js';
import { replyId, toolCallId } from './reply-ids.js';
import type { Sampler } from './sampler.js';
import type { Canonicaliser, EndpointSummary, FaultPlan, OpenEndpoint } from './types.js';

/** What all rollouts of a gateway share. */
export interface CallContext {
  sampler: Sampler;
  template: ChatTemplate;
  encoded: EncodedText;
  canonicalise: Canonicaliser;
  timing: ExchangeTiming;
  closeGraceMs: number;
  maxBodyBytes: number;
  faults: FaultPlan;
}

interface Live {
  exchange: Exchange;
  abort: AbortController;
  done: Promise<void>;
}

interface Parsed {
  request: CanonicalRequest;
  bodyHash: string;
}

/** The calls of one rollout: parse, grow the prompt, sample, answer, record. Several may be under way at once. */
export class CallRunner {
  readonly #options: OpenEndpoint;
  readonly #context: CallContext;
  readonly #key: string;
  readonly #recorder: CallRecorder;
  readonly #conversation: Conversation;
  readonly #live = new Set<Live>();
  readonly arrivals = new Arrivals();
  readonly #totals = { calls: 0, promptTokens: 0, sampledTokens: 0, malformed: 0 };
  #failure: string | null = null;
  #closed = false;

  constructor(options: OpenEndpoint, context: CallContext, writer: RecordWriter, key: string) {
    this.#options = options;
    this.#context = context;
    this.#key = key;
    this.#recorder = new CallRecorder(writer);
    this.#conversation = new Conversation(context.template, context.encoded);
  }

  get summary(): EndpointSummary {
    return { ...this.#totals, pending: this.#live.size, engineFailure: this.#failure };
  }

  run(dialect: Dialect, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const live: Live = {
      exchange: new Exchange(response, dialect),
      abort: new AbortController(),
      done: Promise.resolve(),
    };
    this.#live.add(live);
    live.done = this.#run(dialect, request, live).finally(() => this.#live.delete(live));
    return live.done;
  }

  /** The canonical request, or null after an error was answered. */
  async parse(dialect: Dialect, request: IncomingMessage, exchange: Exchange): Promise<Parsed | null> {
    try {
      const bytes = await readBody(request, this.#context.maxBodyBytes);
      return {
        request: dialect.parse(parseJson(bytes)),
        bodyHash: createHash('sha256').update(bytes).digest('hex'),
      };
    } catch (error) {
      const known = TreewardError.isInstance(error);
      const status = known ? Number(error.data['status'] ?? 400) : 500;
      await exchange.fail(status, known ? error.message : String(error), { cause: 'done', retry: false });
      return null;
    }
  }

  promptLength(request: CanonicalRequest): number {
    return this.#conversation.grow(request.tools, this.#context.canonicalise(request.messages)).ids.length;
  }

  /** Ends what is under way; a sampling whose client has left may still finish, for `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    this.arrivals.close();
    const stop = (live: Live): void => {
      live.exchange.cut();
      live.abort.abort(new TreewardError('GATEWAY_E_CLOSED', 'the rollout was closed'));
    };
    for (const live of this.#live) if (!live.exchange.clientGone) stop(live);
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    await Promise.race([this.#settled(), grace]);
    clearTimeout(timer);
    for (const live of this.#live) stop(live);
    await this.#settled();
  }

  #settled(): Promise<unknown> {
    return Promise.allSettled([...this.#live].map(({ done }) => done));
  }

  async #run(dialect: Dialect, incoming: IncomingMessage, live: Live): Promise<void> {
    const { exchange } = live;
    const parsed = await this.parse(dialect, incoming, exchange);
    if (!parsed) return;
    const { request, bodyHash } = parsed;
    if (this.#closed) {
      await exchange.fail(503, 'this rollout is closed', { cause: 'gateway', retry: false });
      return;
    }
    // No await between here and `begin`: calls are numbered, matched and recorded in the order of their arrival.
    const call = this.#totals.calls++;
    try {
      let outcome: Outcome;
      try {
        const messages = this.#context.canonicalise(request.messages);
        const toolsHash = toolManifestHash(request.tools);
        const headers = publicHeaders(incoming.headers, this.#key);
        this.#recorder.start(call, { headers, bodyHash, toolsHash, time: Date.now() }, request, messages);
        const grown = this.#conversation.grow(request.tools, messages, toolsHash);
        this.#recorder.prompt(call, grown);
        this.#conversation.begin(call, grown);
        this.arrivals.arrived(call);
        outcome = await this.#serve(call, dialect, request, grown, live);
      } catch (error) {
        outcome = await this.#failed(error, dialect, live);
      }
      this.#recorder.end(call, outcome);
    } catch (error) {
      this.#failure ??= describe(error);
      throw error;
    }
  }

  async #serve(
    call: number,
    dialect: Dialect,
    request: CanonicalRequest,
    grown: GrownPrompt,
    { exchange, abort }: Live,
  ): Promise<Outcome> {
    const spent = this.#spent(call);
    if (spent) return exchange.fail(400, spent, { cause: 'done', retry: false });
    if (this.#failure !== null) throw new TreewardError('GATEWAY_E_ENGINE', this.#failure);
    const fault = this.#context.faults.onCall?.(this.#options.rolloutId, call) ?? null;
    if (typeof fault === 'object' && fault !== null) {
      return exchange.fail(fault.status, 'the model is overloaded, try again', { cause: 'gateway' });
    }

    const reply = {
      id: replyId(this.#options.rolloutId, call, dialect),
      model: request.model || 'policy',
      form: request.form,
    };
    const promptTokens = grown.ids.length;
    exchange.hold({ ...reply, promptTokens, stream: request.stream }, this.#context.timing);
    const { contextLength } = await this.#context.sampler.facts(abort.signal);
    const room = contextLength - promptTokens;
    if (room < 1) return tooLong(exchange, dialect, promptTokens, contextLength);
    let sampled: Sampled;
    try {
      sampled = await this.#sample(call, request, grown.ids, room, abort.signal);
    } catch (error) {
      if (!isContextError(error)) throw error;
      return tooLong(exchange, dialect, promptTokens, contextLength);
    }
    if (this.#options.witnessArrivals) await this.arrivals.held(call);
    const { parts } = this.#turn(call, dialect, sampled);
    const stop =
      sampled.finish === 'length'
        ? 'length'
        : parts.some(({ type }) => type === 'tool_call')
          ? 'tool_calls'
          : 'stop';
    const usage = { promptTokens, completionTokens: sampled.tokens.length };
    return exchange.reply({ ...reply, parts, stop, usage }, fault);
  }

  #spent(call: number): string | null {
    const { maxCalls, maxTokens } = this.#options.budget;
    if (call >= maxCalls) return `this rollout's budget of ${maxCalls} model calls is used up`;
    if (this.#totals.sampledTokens >= maxTokens) {
      return `this rollout's budget of ${maxTokens} sampled tokens is used up`;
    }
    return null;
  }

  #sample(
    call: number,
    request: CanonicalRequest,
    prompt: Int32Array,
    room: number,
    signal: AbortSignal,
  ): Promise<Sampled> {
    const { rolloutId, sampling, seed } = this.#options;
    const { template, sampler } = this.#context;
    const effective: EffectiveSampling = {
      temperature: sampling.temperature,
      topP: sampling.topP,
      topK: sampling.topK,
      bannedIds: template.bannedIds,
      maxTokens: Math.max(1, Math.min(sampling.maxTokens, request.requested.maxTokens ?? Infinity, room)),
      seed: `${seed}/${call}`,
    };
    const ask = { prompt, stopIds: template.stopIds, sampling: effective, tag: rolloutId };
    return sampler.sample(ask, signal);
  }

  /** Sampled ids to the turn that the harness gets; recorded and remembered whether or not it still waits for it. */
  #turn(call: number, dialect: Dialect, sampled: Sampled): ParsedReply {
    const { template, canonicalise } = this.#context;
    const turn = template.parse(sampled.tokens);
    const parts: ReplyPart[] = turn.parts.length
      ? turn.parts.map((part, index) =>
          part.type === 'tool_call'
            ? { ...part, id: toolCallId(this.#options.rolloutId, call, index, dialect) }
            : part,
        )
      : [{ type: 'text', text: template.decode(sampled.tokens) }];
    const reply = { ...turn, parts };
    this.#totals.promptTokens += sampled.prompt.length;
    this.#totals.sampledTokens += sampled.tokens.length;
    if (turn.malformed !== undefined) this.#totals.malformed++;
    const message: Message = { role: 'assistant', parts };
    const returned = canonicalise([message])[0] ?? message;
    this.#recorder.sampled(call, sampled, reply, returned);
    this.#conversation.reply(call, returned, sampled.tokens);
    return reply;
  }

  #failed(error: unknown, dialect: Dialect, { exchange, abort }: Live): Promise<Outcome> {
    if (abort.signal.aborted) return exchange.fail(503, 'the rollout was closed', { cause: 'gateway' });
    this.#failure ??= describe(error);
    const engine = TreewardError.isInstance(error) && error.code === 'GATEWAY_E_ENGINE';
    const status = engine ? dialect.overloadedStatus : 500;
    return exchange.fail(status, describe(error), { cause: engine ? 'engine' : 'gateway', retry: false });
  }
}

const isContextError = (error: unknown): boolean =>
  TreewardError.isInstance(error) && error.code === 'ENGINE_E_CONTEXT';

function tooLong(exchange: Exchange, dialect: Dialect, tokens: number, maximum: number): Promise<Outcome> {
  const body = dialect.contextExceeded(tokens, maximum);
  return exchange.fail(400, `prompt is too long: ${tokens} tokens > ${maximum} maximum`, {
    cause: 'done',
    body,
  });
}

function describe(error: unknown): string {
  if (TreewardError.isInstance(error)) return `${error.code}: ${error.message}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (cause) {
    throw new TreewardError('DIALECT_E_BODY', `the body is not JSON: ${(cause as Error).message}`, { cause });
  }
}
