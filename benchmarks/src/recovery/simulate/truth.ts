import type { CallRole, EdgeType } from '@treeward/tree-recovery';

/** What really happened, known because the simulator did it. */
export interface Truth {
  calls: TrueCall[];
  edges: TrueEdge[];
}

export interface TrueCall {
  call: number;
  role: CallRole;
  /** 0 is the main agent, others in the order of their first call. */
  agent: number;
  start: number;
  /** First content byte; the end of the connection if none was written. */
  finish: number;
  /** Empty when nothing was sampled. */
  tokens: Int32Array;
}

export interface TrueEdge {
  from: number;
  to: number;
  type: EdgeType;
}

/** An edge whose later end is still to come. */
export type InEdge = Omit<TrueEdge, 'to'>;

/**
 * First calls of what leaves one place: agents that one reply started, branches of one history. Those that start before the
 * first one's turn is over, its retries included, are `parallel` to it.
 */
export type Siblings = { call: number; turnEnd: number }[];

/** Collects the truth while the simulation runs. */
export class TruthBuilder {
  readonly #calls = new Map<number, TrueCall>();
  readonly #edges: TrueEdge[] = [];
  readonly #siblings: Siblings[] = [];
  readonly #agents = new Map<object, number>();

  /** `agent`: any object that stands for the agent. */
  call(call: number, facts: { role: CallRole; agent: object; start: number; in: readonly InEdge[] }): void {
    if (facts.role !== 'side' && !this.#agents.has(facts.agent)) {
      this.#agents.set(facts.agent, this.#agents.size);
    }
    this.#calls.set(call, {
      call,
      role: facts.role,
      agent: this.#agents.get(facts.agent) ?? 0,
      start: facts.start,
      finish: facts.start,
      tokens: new Int32Array(0),
    });
    for (const edge of facts.in) this.#edges.push({ ...edge, to: call });
  }

  sampled(call: number, tokens: Int32Array): void {
    this.#calls.get(call)!.tokens = tokens;
  }

  finished(call: number, time: number): void {
    this.#calls.get(call)!.finish = time;
  }

  /** The list may still grow. */
  siblings(list: Siblings): void {
    this.#siblings.push(list);
  }

  build(): Truth {
    for (const list of this.#siblings) {
      const siblings = list.map((one) => ({ ...one, start: this.#calls.get(one.call)!.start }));
      siblings.sort((a, b) => a.start - b.start || a.call - b.call);
      const [first, ...others] = siblings;
      for (const other of others) {
        if (other.start < first!.turnEnd) {
          this.#edges.push({ from: first!.call, to: other.call, type: 'parallel' });
        }
      }
    }
    const calls = [...this.#calls.values()].sort((a, b) => a.call - b.call);
    const edges = [...this.#edges].sort((a, b) => a.to - b.to || a.from - b.from);
    return { calls, edges };
  }
}
