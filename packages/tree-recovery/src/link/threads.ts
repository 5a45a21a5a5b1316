import type { Identity } from '@treeward/telemetry';
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
    const name = agentKey(call);
    if (name !== null && !this.#byAgent.has(name)) this.#byAgent.set(name, thread);
    if (call.tools !== null) this.#byTools.set(call.tools, thread);
  }

  /** The thread of the agent that this call names as its own. */
  namedBy(call: LinkCall): number | null {
    const key = agentKey(call);
    return key === null ? null : (this.#byAgent.get(key) ?? null);
  }

  /** The thread of the agent that headers name as the parent; without one the main agent of the session. */
  parentNamedBy({ identity: { parentAgent, session } }: LinkCall): number | null {
    const byAgent = this.#byAgent;
    if (parentAgent !== undefined) return byAgent.get(`agent ${parentAgent}`) ?? null;
    // Some harnesses name the session of the parent, which may be an agent itself.
    const named = session === undefined ? undefined : byAgent.get(`agent ${session}`);
    return named ?? byAgent.get(mainOf(session)) ?? byAgent.get(mainOf(undefined)) ?? null;
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

const mainOf = (session: Identity['session']): string => `main ${session ?? ''}`;

/** Several sessions may stand in one record, each with a main agent of its own. */
function agentKey(call: LinkCall): string | null {
  const name = agentName(call);
  if (name === null) return null;
  return name === '' ? mainOf(call.identity.session) : `agent ${name}`;
}
