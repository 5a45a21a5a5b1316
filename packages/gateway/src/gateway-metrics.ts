import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import type { CallEnd, CallPrompt } from '@treeward/telemetry';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** What a call's time goes to; `read` and `send` are the client's, `sample` the engine's, the rest ours. */
export const PHASES = ['read', 'parse', 'match', 'encode', 'sample', 'render', 'send', 'record'] as const;
export type Phase = (typeof PHASES)[number];

export interface CallFigures {
  dialect: string;
  outcome: Pick<CallEnd, 'status' | 'cause'>;
  /** Milliseconds. */
  phases: Readonly<Partial<Record<Phase, number>>>;
  graft: CallPrompt['graft']['reason'] | null;
  promptTokens: number;
  sampledTokens: number;
}

const SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 120];

/** Prometheus metrics of one gateway. Labels have few values: never a rollout, a key or a text. */
export class GatewayMetrics {
  readonly #registry = new Registry();
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: 10 });
  readonly #calls = new Counter({
    name: 'treeward_gateway_calls_total',
    help: 'Model calls that ended.',
    labelNames: ['dialect', 'status', 'cause'],
    registers: [this.#registry],
  });
  readonly #refused = new Counter({
    name: 'treeward_gateway_refused_total',
    help: 'Requests that became no call: no key, too large, too slow, too many.',
    labelNames: ['status'],
    registers: [this.#registry],
  });
  readonly #phase = new Histogram({
    name: 'treeward_gateway_phase_seconds',
    help: 'Time of a call by phase.',
    labelNames: ['phase'],
    buckets: SECONDS,
    registers: [this.#registry],
  });
  readonly #tokens = new Counter({
    name: 'treeward_gateway_tokens_total',
    help: 'Tokens of prompts and replies.',
    labelNames: ['kind'],
    registers: [this.#registry],
  });
  readonly #grafts = new Counter({
    name: 'treeward_gateway_grafts_total',
    help: 'How prompts were grown.',
    labelNames: ['reason'],
    registers: [this.#registry],
  });

  constructor(live: { inFlight(): number; openRollouts(): number; encodings(): number }) {
    this.#delay.enable();
    this.#gauge('treeward_gateway_in_flight', 'Calls under way.', live.inFlight);
    this.#gauge('treeward_gateway_open_rollouts', 'Endpoints that are open.', live.openRollouts);
    this.#gauge('treeward_gateway_encodings', 'Texts encoded so far, not found.', live.encodings);
    this.#gauge('treeward_gateway_loop_delay_p99_seconds', 'Event-loop delay since the last look.', () => {
      // Nanoseconds, and never less than the interval at which it looks.
      const p99 = this.#delay.percentile(99) / 1e9;
      this.#delay.reset();
      return Number.isFinite(p99) ? Math.max(0, p99 - 0.01) : 0;
    });
  }

  call(figures: CallFigures): void {
    const { dialect, outcome, phases, graft } = figures;
    this.#calls.inc({ dialect, status: String(outcome.status), cause: outcome.cause });
    for (const phase of PHASES) {
      const ms = phases[phase];
      if (ms !== undefined) this.#phase.observe({ phase }, ms / 1000);
    }
    if (graft) this.#grafts.inc({ reason: graft });
    this.#tokens.inc({ kind: 'prompt' }, figures.promptTokens);
    this.#tokens.inc({ kind: 'sampled' }, figures.sampledTokens);
  }

  refused(status: number): void {
    this.#refused.inc({ status: String(status) });
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  close(): void {
    this.#delay.disable();
  }

  #gauge(name: string, help: string, value: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.set(value());
      },
    });
  }
}
