import type { GatewayControl } from '@treeward/gateway';
import type { Execution, FileChange, Sandbox } from '@treeward/sandbox';
import type { ToolExec, WorkspaceChange, WorkspaceEvent } from '@treeward/telemetry';
import type { WorkspaceStates } from './workspace-states.js';

/** Beyond this a workspace is told by its first paths only; a task that writes more is not a matter of credit. */
const MAX_CHANGES = 10_000;
/** Of a command line in the record. */
const LONGEST_COMMAND = 2000;

interface Look {
  /** Everything that differs from the task's workspace. */
  all: FileChange[];
  event: WorkspaceEvent;
}

/**
 * The file witness of one rollout: what changed in the workspace up to the arrival of each call. The harness waits for
 * its reply, and the gateway holds that until it was told, so what a reply causes is never counted before it.
 */
export class WorkspaceWitness {
  readonly #gateway: GatewayControl;
  readonly #rolloutId: string;
  readonly #sandbox: Pick<Sandbox, 'changes'>;
  #known = new Map<string, string>();
  readonly #lost = new AbortController();
  readonly #states: WorkspaceStates | null;
  #watching: Promise<void> | null = null;

  /** @param states keeps what each call found */
  constructor(
    gateway: GatewayControl,
    rolloutId: string,
    sandbox: Pick<Sandbox, 'changes'>,
    states: WorkspaceStates | null = null,
  ) {
    this.#gateway = gateway;
    this.#rolloutId = rolloutId;
    this.#sandbox = sandbox;
    this.#states = states;
  }

  /** Aborted, with the reason, when the gateway no longer knows this rollout: the harness would talk to nobody. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Follows arrivals until the rollout is closed at the gateway. */
  watch(): void {
    this.#watching ??= this.#watch();
  }

  /** After the rollout was closed: the state at the end, and what of it is new. */
  async last(): Promise<Look> {
    await this.#watching;
    return this.#look(null);
  }

  async #watch(): Promise<void> {
    try {
      for (let after = 0; ;) {
        const call = await this.#asking(() => this.#gateway.arrival(this.#rolloutId, after));
        if (call === null) {
          // Closed, or the gateway was started again and never heard of it: only the first has a status.
          await this.#asking(() => this.#gateway.status(this.#rolloutId));
          return;
        }
        after = call + 1;
        // A look that fails costs its evidence and the gateway's patience for this call; the next one may succeed. What
        // cannot be delivered is missing in the record; whether the gateway is there at all, the next question tells.
        const seen = await this.#look(call).catch(() => null);
        if (seen) await this.#states?.look(call, seen.all, seen.event.changes.length > 0);
        if (seen) await this.#gateway.witness(this.#rolloutId, [seen.event]).catch(() => undefined);
      }
    } catch {
      // Told by `lost`.
    }
  }

  async #asking<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await question();
    } catch (error) {
      this.#lost.abort(error);
      throw error;
    }
  }

  async #look(call: number | null): Promise<Look> {
    const time = Date.now();
    const all = await this.#sandbox.changes();
    const changes = newSince(this.#known, all.slice(0, MAX_CHANGES));
    return { all, event: { type: 'workspace', time, call, changes } };
  }
}

/** What differs from the state in `known`, which becomes the new one. */
export function newSince(known: Map<string, string>, now: readonly FileChange[]): WorkspaceChange[] {
  const changes: WorkspaceChange[] = [];
  const gone = new Set(known.keys());
  for (const { path, kind, size, mode, sha256, target } of now) {
    gone.delete(path);
    const state = [kind, size, mode, sha256 ?? '', target ?? ''].join(' ');
    if (known.get(path) === state) continue;
    known.set(path, state);
    changes.push({ path, kind, size, ...(sha256 !== undefined && { sha256 }) });
  }
  for (const path of gone) {
    known.delete(path);
    changes.push({ path, kind: 'undone', size: 0 });
  }
  return changes;
}

export const toolExec = ({ pid, parentPid, argv, start, end, code, signal }: Execution): ToolExec => ({
  type: 'tool.exec',
  source: 'strace',
  pid,
  parentPid,
  command: argv.map(quoted).join(' ').slice(0, LONGEST_COMMAND),
  start,
  end,
  code,
  signal,
});

/** As a shell would take it. */
const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
