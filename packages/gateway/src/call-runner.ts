import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { TreewardError } from '@treeward/base';
import type { CanonicalRequest, Dialect, Message, ReplyPart } from '@treeward/messages';
import type { ChatTemplate } from '@treeward/policy';
import type { Identity, RecordWriter } from '@treeward/telemetry';
import { Arrivals } from './arrivals.js';
import { CallRecorder, publicHeaders } from './call-recorder.js';
import { CallStop } from './call-stop.js';
import { CallWatch, type Watchers } from './call-watch.js';
import { Conversation, type GrownPrompt } from './conversation.js';
import type { EncodedText } from './encoded-text.js';
import { Exchange, type ExchangeTiming, type Outcome } from './exchange.js';
import { manifestHash, MessageKeys } from './message-key.js';
import type { Pacer } from './pacer.js';
import { readBody } from './read-body.js';
import { replyId, toolCallId } from './reply-ids.js';
import type { Sampler } from './sampler.js';
import { askEngine, type Turn } from './turn.js';
import type {
  Canonicaliser,
  ClientLimits,
  EndpointSummary,
  FaultPlan,
  OpenEndpoint,
  RequestFacts,
} from './types.js';

/** What all rollouts of a gateway share. */
export interface CallContext {
  sampler: Sampler;
  template: ChatTemplate;
  encoded: EncodedText;
  graft: boolean;
  canonicalise: Canonicaliser;
  identify: (request: RequestFacts) => Identity | null;
  pacer: Pacer;
  timing: ExchangeTiming;
  closeGraceMs: number;
  limits: ClientLimits;
  watchers: Watchers;
  faults: FaultPlan;
}

interface Live {
  exchange: Exchange;
  stop: CallStop;
  watch: CallWatch;
  done: Promise<void>;
}

interface Parsed {
  request: CanonicalRequest;
  bodyHash: string;
}

/** A request's messages, canonical, as they are matched with earlier calls'. */
interface Matched {
  messages: readonly Message[];
  keys: readonly string[];
  toolsHash: string;
}

/** The calls of one rollout: parse, grow the prompt, sample, answer, record. Several may be under way at once. */
export class CallRunner {
  readonly #options: OpenEndpoint;
  readonly #context: CallContext;
  readonly #key: string;
  readonly #recorder: CallRecorder;
  readonly #conversation: Conversation;
  readonly #keys = new MessageKeys();
  readonly #live = new Set<Live>();
  readonly arrivals = new Arrivals();
  readonly #totals = { calls: 0, promptTokens: 0, sampledTokens: 0, malformed: 0 };
  #failure: string | null = null;
  #closed = false;
  /** Ends when every prompt so far is grown. */
  #growing: Promise<unknown> = Promise.resolve();

  constructor(options: OpenEndpoint, context: CallContext, writer: RecordWriter, key: string) {
    this.#options = options;
    this.#context = context;
    this.#key = key;
    this.#recorder = new CallRecorder(writer);
    this.#conversation = new Conversation(context.template, context.encoded, { graft: context.graft });
  }

  get summary(): EndpointSummary {
    return { ...this.#totals, pending: this.#live.size, engineFailure: this.#failure };
  }

  get pending(): number {
    return this.#live.size;
  }

  /** Records what answers, as soon as that is known and as long as the rollout is open. */
  async describe(): Promise<void> {
    const facts = await Promise.resolve(this.#context.sampler.facts(new CallStop())).catch(() => null);
    if (facts && !this.#closed) this.#recorder.engine(facts);
  }

  run(dialect: Dialect, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const live: Live = {
      exchange: new Exchange(response, dialect),
      stop: new CallStop(),
      watch: new CallWatch(this.#context.watchers),
      done: Promise.resolve(),
    };
    this.#live.add(live);
    live.done = this.#run(dialect, request, live).finally(() => this.#live.delete(live));
    return live.done;
  }

  /** The canonical request, or null after an error was answered. */
  async parse(
    dialect: Dialect,
    request: IncomingMessage,
    { exchange, watch }: Pick<Live, 'exchange' | 'watch'>,
  ): Promise<Parsed | null> {
    const { maxBodyBytes, bodyTimeoutMs } = this.#context.limits;
    try {
      const bytes = await watch.time('read', () =>
        readBody(request, { maxBytes: maxBodyBytes, timeoutMs: bodyTimeoutMs }),
      );
      return await this.#context.pacer.run(() =>
        watch.time('parse', () => ({
          request: dialect.parse(parseJson(bytes)),
          bodyHash: hash('sha256', bytes),
        })),
      );
    } catch (error) {
      const known = TreewardError.isInstance(error);
      const status = known ? Number(error.data['status'] ?? 400) : 500;
      watch.refused(status, known ? error.code : 'E_UNEXPECTED');
      await exchange.fail(status, known ? error.message : String(error), { cause: 'done', retry: false });
      // A body that is still coming has nowhere to go.
      if (!request.complete) request.destroy();
      return null;
    }
  }

  async promptLength(request: CanonicalRequest): Promise<number> {
    const messages = this.#context.canonicalise(request.messages);
    return (await this.#conversation.grow(request.tools, messages)).ids.length;
  }

  /** Ends what is under way; a sampling whose client has left may still finish, for `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    this.arrivals.close();
    const stop = (live: Live): void => {
      live.exchange.cut();
      live.stop.stop(new TreewardError('GATEWAY_E_CLOSED', 'the rollout was closed'));
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
    const { exchange, watch } = live;
    const parsed = await this.parse(dialect, incoming, live);
    if (!parsed) return;
    if (this.#closed) {
      watch.refused(503, 'GATEWAY_E_CLOSED');
      await exchange.fail(503, 'this rollout is closed', { cause: 'gateway', retry: false });
      return;
    }
    // No await between here and `#grow`: calls are numbered, recorded and matched in the order of their arrival.
    const call = this.#totals.calls++;
    const who = { rolloutId: this.#options.rolloutId, call, dialect: dialect.name };
    let code: string | undefined;
    try {
      let outcome: Outcome;
      try {
        outcome = await this.#serve(
          call,
          dialect,
          parsed.request,
          this.#arrive(call, incoming, parsed, watch),
          live,
        );
      } catch (error) {
        code = TreewardError.isInstance(error) ? error.code : 'E_UNEXPECTED';
        outcome = await this.#failed(error, dialect, live);
      }
      watch.time('record', () => this.#recorder.end(call, outcome));
      watch.ended(who, outcome, code);
    } catch (error) {
      this.#failure ??= describe(error);
      throw error;
    }
  }

  /** Numbers are given; from here on the call is in the record. Resolves with its prompt. */
  #arrive(
    call: number,
    incoming: IncomingMessage,
    { request, bodyHash }: Parsed,
    watch: CallWatch,
  ): Promise<GrownPrompt> {
    const headers = publicHeaders(incoming.headers, this.#key);
    const matched = watch.time('match', () => {
      const messages = this.#context.canonicalise(request.messages);
      return {
        request,
        headers,
        bodyHash,
        time: Date.now(),
        messages,
        keys: this.#keys.of(messages),
        toolsHash: manifestHash(request.tools),
        identity: this.#context.identify({ headers, messages: request.messages, tools: request.tools }),
      };
    });
    watch.time('record', () => this.#recorder.start(call, matched));
    this.arrivals.arrived(call);
    const grown = this.#growing.then(() => this.#grow(call, request, matched, watch));
    this.#growing = grown.catch(() => undefined);
    return grown;
  }

  async #grow(
    call: number,
    { tools }: CanonicalRequest,
    { messages, keys, toolsHash }: Matched,
    watch: CallWatch,
  ): Promise<GrownPrompt> {
    const grown = await watch.time('encode', () => this.#conversation.grow(tools, messages, toolsHash, keys));
    this.#conversation.begin(call, grown);
    watch.time('record', () => this.#recorder.prompt(call, grown));
    watch.prompted(messages, grown.ids.length, grown.graft.reason);
    return grown;
  }

  async #serve(
    call: number,
    dialect: Dialect,
    request: CanonicalRequest,
    growing: Promise<GrownPrompt>,
    { exchange, stop: stopped, watch }: Live,
  ): Promise<Outcome> {
    const { ids: prompt } = await growing;
    const spent = this.#spent(call);
    if (spent) return exchange.fail(400, spent, { cause: 'done', retry: false });
    if (this.#failure !== null) throw new TreewardError('GATEWAY_E_ENGINE', this.#failure);
    const fault = this.#context.faults.onCall?.(this.#options.rolloutId, call) ?? null;
    if (typeof fault === 'object' && fault !== null) {
      return exchange.fail(fault.status, 'the model is overloaded, try again', { cause: 'gateway' });
    }

    const { rolloutId } = this.#options;
    const id = replyId(rolloutId, call, dialect);
    const model = request.model || 'policy';
    const { form } = request;
    const promptTokens = prompt.length;
    if (request.stream) exchange.hold({ id, model, form, promptTokens }, this.#context.timing);
    const known = this.#context.sampler.facts(stopped);
    const facts = known instanceof Promise ? await known : known;
    this.#recorder.engine(facts);
    let turn: Turn;
    try {
      const asked = { endpoint: this.#options, call, request, prompt };
      turn = await watch.time('sample', () => askEngine(asked, this.#context, facts, stopped));
    } catch (error) {
      if (!isContextError(error)) throw error;
      return tooLong(exchange, dialect, promptTokens, facts.contextLength);
    }
    if (this.#options.witnessArrivals) await this.arrivals.held(call);
    const parts = turn.parts.map((part, index) =>
      part.type === 'tool_call' ? { ...part, id: toolCallId(rolloutId, call, index, dialect) } : part,
    );
    watch.time('record', () => this.#remember(call, turn, parts));
    watch.replied(parts, turn.tokens.length);
    const stop = turn.finish === 'length' ? 'length' : calls(parts) ? 'tool_calls' : 'stop';
    const { usage } = turn;
    const sending = watch.time('render', () => ({
      outcome: exchange.reply({ id, model, form, parts, stop, usage }, fault),
    }));
    return watch.time('send', () => this.#sent(sending.outcome, exchange));
  }

  /** A client that does not read its reply is left, after a while. */
  async #sent(sending: Promise<Outcome>, exchange: Exchange): Promise<Outcome> {
    const timer = setTimeout(() => exchange.cut(), this.#context.limits.sendTimeoutMs);
    try {
      return await sending;
    } finally {
      clearTimeout(timer);
    }
  }

  #spent(call: number): string | null {
    const { maxCalls, maxTokens } = this.#options.budget;
    if (call >= maxCalls) return `this rollout's budget of ${maxCalls} model calls is used up`;
    if (this.#totals.sampledTokens >= maxTokens) {
      return `this rollout's budget of ${maxTokens} sampled tokens is used up`;
    }
    return null;
  }

  /** The turn that the harness gets, whether or not it still waits for it. */
  #remember(call: number, turn: Turn, parts: ReplyPart[]): void {
    this.#totals.promptTokens += turn.usage.promptTokens;
    this.#totals.sampledTokens += turn.usage.completionTokens;
    if (turn.malformed !== undefined) this.#totals.malformed++;
    turn.parts = parts;
    const message: Message = { role: 'assistant', parts };
    const returned = this.#context.canonicalise([message])[0] ?? message;
    const key = this.#recorder.sampled(call, turn, returned);
    this.#conversation.reply(call, returned, turn.tokens, key);
  }

  #failed(error: unknown, dialect: Dialect, { exchange, stop }: Live): Promise<Outcome> {
    if (stop.reason) return exchange.fail(503, 'the rollout was closed', { cause: 'gateway' });
    this.#failure ??= describe(error);
    const engine = TreewardError.isInstance(error) && error.code === 'GATEWAY_E_ENGINE';
    const status = engine ? dialect.overloadedStatus : 500;
    return exchange.fail(status, describe(error), { cause: engine ? 'engine' : 'gateway', retry: false });
  }
}

const calls = (parts: readonly ReplyPart[]): boolean => parts.some(({ type }) => type === 'tool_call');

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
