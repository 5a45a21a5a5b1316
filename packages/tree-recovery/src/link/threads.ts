import type { LinkCall } from './link-call.js';

/** The calls of one agent, whatever became of its history. */
export interface Thread {
  readonly id: number;
  /** Thread of the call that started it; null for a main agent or where it is not known. */
  readonly parent: number | null;
  /** The call, and which of its tool uses, that started it. */
  readonly spawn: { of: number; use: number } | null;
  readonly calls: number[];
  readonly subagent: boolean;
}

/** Which agent each call belongs to, kept while calls are attached in their order. */
export class Threads {
  readonly all: Thread[] = [];
  readonly #byAgent = new Map<string, number>();
  readonly #byTools = new Map<string, number>();

  open(parent: number | null, spawn: Thread['spawn'], subagent: boolean): number {
    const id = this.all.length;
    this.all.push({ id, parent, spawn, calls: [], subagent });
    return id;
  }

  join(call: LinkCall, thread: number): void {
    call.thread = thread;
    if (thread === -1) return;
    this.all[thread]!.calls.push(call.at);
    const name = agentName(call);
    if (name !== null && !this.#byAgent.has(name)) this.#byAgent.set(name, thread);
    if (call.tools !== null) this.#byTools.set(call.tools, thread);
  }

  /** The thread whose calls named that agent. */
  named(agent: string): number | null {
    return this.#byAgent.get(agent) ?? null;
  }

  /** The thread that last used the same tools. */
  withTools(call: LinkCall): number | null {
    return call.tools === null ? null : (this.#byTools.get(call.tools) ?? null);
  }

  lastOf(thread: number): number {
    return this.all[thread]!.calls.at(-1)!;
  }
}

/** The agent that headers name, '' for the main one; null when they say nothing. */
export function agentName({ identity }: LinkCall): string | null {
  if (identity.agent !== undefined) return identity.agent;
  if (
    identity.requestClass === 'main' ||
    (identity.session !== undefined && identity.requestClass === undefined)
  ) {
    return '';
  }
  return null;
}
