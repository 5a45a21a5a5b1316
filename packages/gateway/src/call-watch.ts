import { performance } from 'node:perf_hooks';
import { ROOT_CONTEXT, SpanStatusCode, trace, type Span, type Tracer } from '@opentelemetry/api';
import type { Message, ReplyPart } from '@treeward/messages';
import type { CallEnd, CallPrompt } from '@treeward/telemetry';
import type { Logger } from 'pino';
import type { GatewayMetrics, Phase } from './gateway-metrics.js';

/** What all calls report to. */
export interface Watchers {
  metrics: GatewayMetrics;
  log: Logger | null;
  logPrompts: boolean;
}

/** A tracer of whatever SDK the application registered; without one every span does nothing. */
const tracer = (): Tracer => trace.getTracer('@treeward/gateway');

/** Follows one call: time by phase, a span with its phases as children, one line of log. Texts only where asked for. */
export class CallWatch {
  readonly #watchers: Watchers;
  readonly #span: Span = tracer().startSpan('gateway.call');
  readonly #phases: Partial<Record<Phase, number>> = {};
  readonly #texts: { messages?: readonly Message[]; reply?: readonly ReplyPart[] } = {};
  #graft: CallPrompt['graft']['reason'] | null = null;
  #promptTokens = 0;
  #sampledTokens = 0;

  constructor(watchers: Watchers) {
    this.#watchers = watchers;
  }

  /** Time of `work`, a promise's until it settles. */
  time<T>(phase: Phase, work: () => T): T {
    const start = performance.now();
    const stop = (): void => this.#add(phase, start, performance.now() - start);
    let result: T;
    try {
      result = work();
    } catch (error) {
      stop();
      throw error;
    }
    if (result instanceof Promise) result.then(stop, stop);
    else stop();
    return result;
  }

  /** `ms` that began at `start`, by `performance.now`. */
  #add(phase: Phase, start: number, ms: number): void {
    this.#phases[phase] = (this.#phases[phase] ?? 0) + ms;
    if (!this.#span.isRecording()) return;
    const context = trace.setSpan(ROOT_CONTEXT, this.#span);
    // Spans take milliseconds since the epoch.
    const startTime = performance.timeOrigin + start;
    tracer()
      .startSpan(`gateway.${phase}`, { startTime }, context)
      .end(startTime + ms);
  }

  prompted(messages: readonly Message[], tokens: number, graft: CallPrompt['graft']['reason']): void {
    this.#texts.messages = messages;
    this.#promptTokens = tokens;
    this.#graft = graft;
  }

  replied(reply: readonly ReplyPart[], tokens: number): void {
    this.#texts.reply = reply;
    this.#sampledTokens = tokens;
  }

  /** A request that became no call. */
  refused(status: number, code: string): void {
    this.#watchers.metrics.refused(status);
    this.#watchers.log?.info({ status, code }, 'refused');
    this.#span.setAttribute('http.response.status_code', status);
    this.#span.end();
  }

  /** A request that only asked for the length of its prompt. */
  counted(): void {
    this.#span.end();
  }

  ended(
    who: { rolloutId: string; call: number; dialect: string },
    outcome: Pick<CallEnd, 'status' | 'cause' | 'delivery'>,
    code?: string,
  ): void {
    const { metrics, log, logPrompts } = this.#watchers;
    metrics.call({
      dialect: who.dialect,
      outcome,
      phases: this.#phases,
      graft: this.#graft,
      promptTokens: this.#promptTokens,
      sampledTokens: this.#sampledTokens,
    });
    if (!log && !this.#span.isRecording()) return;
    const { status, cause, delivery } = outcome;
    const facts = {
      ...who,
      status,
      cause,
      delivery,
      graft: this.#graft,
      promptTokens: this.#promptTokens,
      sampledTokens: this.#sampledTokens,
    };
    const ms = Object.entries(this.#phases).map(([name, time]) => [name, Math.round(time * 100) / 100]);
    log?.info(
      {
        ...facts,
        ms: Object.fromEntries(ms),
        ...(code !== undefined && { code }),
        ...(logPrompts && this.#texts),
      },
      'call',
    );
    for (const [name, value] of Object.entries(facts)) {
      if (value !== null) this.#span.setAttribute(`treeward.${name}`, value);
    }
    if (cause === 'engine' || status >= 500) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end();
  }
}
