import type { Evidence } from '../evidence.js';
import type { Attachment, LinkCall } from './link-call.js';
import { RECENT_THREADS, type Scene } from './scene.js';
import { SpawnFinder } from './spawns.js';
import { SummaryFinder } from './summaries.js';
import { agentName } from './threads.js';

/**
 * What a conversation that begins anew is: a compacted history, an agent at work, a request for a summary, or something
 * outside the work. Headers take part in it, but never alone where contents speak.
 */
export class RootClassifier {
  readonly #calls: Scene['calls'];
  readonly #threads: Scene['threads'];
  readonly #growth: Scene['growth'];
  readonly #anyTools: boolean;
  readonly summaries: SummaryFinder;
  readonly spawns: SpawnFinder;

  constructor(scene: Scene) {
    this.#calls = scene.calls;
    this.#threads = scene.threads;
    this.#growth = scene.growth;
    this.#anyTools = scene.anyTools;
    this.summaries = new SummaryFinder(scene);
    this.spawns = new SpawnFinder(scene);
  }

  classify(call: LinkCall): Attachment | null {
    // The text of a conversation holds its tasks and summaries as well.
    const summarises = this.summaries.summarises(call);
    if (summarises) return summarises;
    const summary = this.summaries.summaryIn(call);
    // An agent that is known, in a request without tools: not at its beginning.
    const aside = call.toolless === true && this.#anyTools && this.#threads.namedBy(call) !== null;
    const task = aside ? null : this.spawns.taskIn(call);
    // A task may quote what an agent found; a summary may quote a task. The longer quotation explains the other.
    const asked = call.identity.compacted === true || summary?.evidence.includes('summary-asked');
    if (summary && (!task || (asked ? summary.anchors >= task.anchors : summary.anchors > task.anchors))) {
      return { kind: 'compacted', of: summary.of, evidence: summary.evidence };
    }
    if (task) return this.spawns.spawned(call, task);
    return this.#side(call) ?? this.spawns.spawnedInTool(call) ?? this.#afterLostReply(call);
  }

  /** A conversation without any known cause. */
  unexplained(call: LinkCall): Attachment {
    return this.#side(call) ?? { kind: 'root' };
  }

  /** The thread of a call, and what it leaves for the next. */
  settle(call: LinkCall): void {
    this.#threads.join(call, this.#threadOf(call));
    this.spawns.settle(call);
    this.summaries.settle(call);
    this.#growth.add(call);
  }

  #threadOf(call: LinkCall): number {
    const { attachment } = call;
    switch (attachment.kind) {
      case 'side':
        return -1;
      case 'spawned': {
        const parent = this.#calls[attachment.of]!.thread;
        return this.#threads.open(parent, { of: attachment.of, use: attachment.use }, true);
      }
      case 'root':
        return this.#threadOfRoot(call);
      default:
        return this.#calls[attachment.of]!.thread;
    }
  }

  #threadOfRoot(call: LinkCall): number {
    const threads = this.#threads;
    const name = agentName(call);
    const subagent = name !== null ? name !== '' : call.identity.requestClass === 'subagent';
    const known = threads.namedBy(call);
    if (known !== null) return known;
    if (subagent) {
      return threads.open(threads.parentNamedBy(call) ?? (threads.all.length > 0 ? 0 : null), null, true);
    }
    // A conversation from its first message on is a session of its own; a later part belongs to one that is known.
    const whole = !call.fragment && call.node !== -1 && call.turn === 0;
    if (threads.all.length === 0 || name === '' || whole) return threads.open(null, null, false);
    return threads.withTools(call) ?? 0;
  }

  /**
   * A conversation of other tools begins, or one of the same tools begins anew, while the record lost what was said
   * last: that reply started an agent, or was the summary that had been asked for.
   */
  #afterLostReply(call: LinkCall): Attachment | null {
    for (const { calls } of [...this.#threads.all].reverse().slice(0, RECENT_THREADS)) {
      const at = calls.at(-1);
      const last = at === undefined ? undefined : this.#calls[at]!;
      if (!last?.replyLost || last.finish > call.start || this.#growth.isContinued(last.at)) continue;
      const sameTools = last.tools !== null && last.tools === call.tools;
      const parent = agentName(call) === null ? last.thread : this.#threads.parentNamedBy(call);
      if (this.summaries.wasAskedForSummary(last) && (sameTools || last.toolless === true)) {
        return { kind: 'compacted', of: last.at, evidence: ['summary-asked', 'reply-lost'] };
      }
      const agent = agentName(call);
      const named = agent !== null && agent !== '' && this.#threads.namedBy(call) === null;
      if (!sameTools && call.toolless === false && agent !== '' && parent === last.thread) {
        const use = this.#growth.extendedBy(last.at).length;
        const evidence: Evidence[] = ['reply-lost', 'in-tool', ...(named ? (['header-agent'] as const) : [])];
        return { kind: 'spawned', of: last.at, use, evidence };
      }
    }
    return null;
  }

  /** Outside the work: told from the request alone. What headers say of it counts only against tools. */
  #side(call: LinkCall): Attachment | null {
    if (call.fragment || call.identity.requestClass === 'compaction') return null;
    if (call.toolless === true && this.#anyTools) return { kind: 'side' };
    return call.identity.requestClass === 'side' && call.toolless === null ? { kind: 'side' } : null;
  }
}
