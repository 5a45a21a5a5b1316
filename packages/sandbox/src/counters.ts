export interface SandboxCounters {
  created: number;
  destroyed: number;
  /** Sandboxes whose destroy could not remove everything; the sweeper tries again. */
  leaked: number;
  swept: number;
  create_failed: number;
  oom: number;
  timeout: number;
  /** Milliseconds over the last 512 of each. */
  time: Record<'create' | 'exec' | 'destroy', { count: number; p50: number; p90: number }>;
}

type Countable = Exclude<keyof SandboxCounters, 'time'>;
type Timed = keyof SandboxCounters['time'];
const KEPT = 512;

/** What one provider did, for the `sandbox/*` metrics. */
export class CounterSet {
  readonly #counts: Record<Countable, number> = {
    created: 0,
    destroyed: 0,
    leaked: 0,
    swept: 0,
    create_failed: 0,
    oom: 0,
    timeout: 0,
  };
  readonly #times: Record<Timed, number[]> = { create: [], exec: [], destroy: [] };

  add(name: Countable, n = 1): void {
    this.#counts[name] += n;
  }

  time(name: Timed, ms: number): void {
    const list = this.#times[name];
    list.push(ms);
    if (list.length > KEPT) list.shift();
  }

  snapshot(): SandboxCounters {
    const summary = (name: Timed): { count: number; p50: number; p90: number } => {
      const sorted = [...this.#times[name]].sort((a, b) => a - b);
      const at = (q: number): number =>
        sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
      return { count: sorted.length, p50: at(0.5), p90: at(0.9) };
    };
    return {
      ...this.#counts,
      time: { create: summary('create'), exec: summary('exec'), destroy: summary('destroy') },
    };
  }
}
