import type { Evidence } from '../evidence.js';
import { replyKey, type MessageTree } from '../message-tree.js';
import type { Attachment, LinkCall } from './link-call.js';
import type { ReplyIndex, TaskHit } from './reply-index.js';
import { wordsOf } from './texts.js';
import { agentName, type Threads } from './threads.js';
import { asksForSummary } from './turns.js';

/** Share of a reply that stands in a new history before it counts as its summary: asked for as one, or not. */
const SUMMARY_ASKED = 0.3;
const SUMMARY_UNASKED = 0.5;
/** Anchors below which a text found by chance is likelier than a quotation. */
const FEW_ANCHORS = 2;
/** Agents, the latest, of which one may have lost its last reply. */
const RECENT_THREADS = 16;
/** Calls of one agent, the latest, of which one may have written its summary: branches run side by side. */
const RECENT_CALLS = 8;
/** Letters of a summary below which it could stand anywhere by chance. */
const SUMMARY_LETTERS = 6;
/** Attempts at one turn that are compared. */
const ATTEMPTS = 64;
/** Words below which a text has no anchors. */
const FEW_WORDS = 4;
/** Share of a tool call's texts in the first message of an agent. */
const TASK = 0.5;
const TASK_WHOLE = 0.9;

interface Summary {
  of: number;
  anchors: number;
  evidence: Evidence[];
}

/**
 * What a conversation that begins anew is: a compacted history, an agent at work, a request for a summary, or something
 * outside the work. Headers take part in it, but never alone where contents speak.
 */
export class RootClassifier {
  readonly #calls: readonly LinkCall[];
  readonly #tree: MessageTree;
  readonly #replies: ReplyIndex;
  readonly #threads: Threads;
  readonly #children: number[][] = [];
  readonly #taken = new Set<string>();
  /** Calls that were too long for the model, in their order. */
  readonly #refused = new Set<number>();
  readonly #anyTools: boolean;
  readonly #summaries: ReadonlySet<number>;
  /** Calls taken for side calls whose replies later histories hold as their summaries. */
  readonly lateSummaries = new Set<number>();

  /** `summaries`: calls that are known to have written one. */
  constructor(
    calls: readonly LinkCall[],
    tree: MessageTree,
    replies: ReplyIndex,
    threads: Threads,
    anyTools: boolean,
    summaries: ReadonlySet<number>,
  ) {
    this.#summaries = summaries;
    this.#calls = calls;
    this.#tree = tree;
    this.#replies = replies;
    this.#threads = threads;
    this.#anyTools = anyTools;
  }

  /** Calls that go on from that one. */
  extendedBy(at: number): readonly number[] {
    return this.#children[at] ?? [];
  }

  classify(call: LinkCall): Attachment | null {
    // The text of a conversation holds its tasks and summaries as well.
    const summarises = this.#summarises(call);
    if (summarises) return summarises;
    const summary = this.summaryIn(call);
    const task = this.#taskIn(call);
    // A task may quote what an agent found; a summary may quote a task. The longer quotation explains the other.
    const asked = call.identity.compacted === true || summary?.evidence.includes('summary-asked');
    if (summary && (!task || (asked ? summary.anchors >= task.anchors : summary.anchors > task.anchors))) {
      return { kind: 'compacted', of: summary.of, evidence: summary.evidence };
    }
    if (task) return this.#spawned(call, task);
    return this.#side(call) ?? this.#spawnedByHeader(call) ?? this.#afterLostReply(call);
  }

  /** One reply may give the same task to several agents: then equal first requests are not one sampled again. */
  otherChild(call: LinkCall, earlier: LinkCall): Attachment | null {
    const { attachment } = this.#calls[this.#firstAttempt(earlier.at)]!;
    if (attachment.kind !== 'spawned' || !earlier.delivered || !earlier.sampled) return null;
    const same = call.identity.agent !== undefined && call.identity.agent === earlier.identity.agent;
    const { of, use } = attachment;
    const { uses } = this.#calls[of]!;
    const free = uses.findIndex(({ text }, i) => text === uses[use]!.text && !this.#taken.has(`${of}:${i}`));
    return free === -1 || same ? null : this.#spawned(call, { at: of, use: free, coverage: 1, anchors: 1 });
  }

  #firstAttempt(at: number): number {
    for (let first = at; ;) {
      const { attachment } = this.#calls[first]!;
      if (attachment.kind !== 'repeats') return first;
      first = attachment.of;
    }
  }

  /** A conversation without any known cause. */
  unexplained(call: LinkCall): Attachment {
    return this.#side(call) ?? { kind: 'root' };
  }

  /** The reply whose text this history holds as its own past. */
  summaryIn(call: LinkCall): Summary | null {
    const text = [call.systemText, ...this.#freshTexts(call, 'user')].join('\n');
    let best: (Summary & { asked: boolean; coverage: number }) | null = null;
    const quoted = [...this.#replies.quotedIn(text, call.at), ...this.#shortSummariesIn(text, call)];
    for (const { at: any, coverage, anchors } of quoted) {
      const at = this.takenTwin(any, call);
      const source = this.#calls[at]!;
      if (source.uses.length > 0 || this.#goesOn(at) || !this.#hasSameTools(source, call)) continue;
      const asked = this.#wasAskedForSummary(source);
      if (coverage < (asked ? SUMMARY_ASKED : SUMMARY_UNASKED)) continue;
      // Without words that ask for it: the last that the same agent said, long enough to stand there for no other reason.
      if (!asked && (anchors < FEW_ANCHORS || !this.#isSameAgent(source, call))) continue;
      if (best && Number(best.asked) * 2 + best.coverage >= Number(asked) * 2 + coverage) continue;
      const evidence: Evidence[] = ['summary-text'];
      if (asked) evidence.push('summary-asked');
      if (call.identity.compacted || source.identity.requestClass === 'compaction')
        evidence.push('header-class');
      best = { of: at, anchors, evidence, asked, coverage };
    }
    if (best) return best;
    for (const { at, coverage, anchors } of this.#replies.outsideIn(text, call.at)) {
      // What seemed outside the work turns out to be its summary.
      if (coverage >= SUMMARY_UNASKED && anchors >= FEW_ANCHORS) this.lateSummaries.add(at);
    }
    return null;
  }

  /** Replies of few words, whole or cut, that were asked for as a summary or whose turns before them were kept beside it. */
  #shortSummariesIn(text: string, call: LinkCall): { at: number; coverage: number; anchors: number }[] {
    const all = ` ${wordsOf(text).join(' ')} `;
    const holds = (words: readonly string[]): boolean => {
      const wanted = words.join(' ');
      return wanted.length >= SUMMARY_LETTERS && all.includes(` ${wanted} `);
    };
    return this.#threads.all.slice(-RECENT_THREADS).flatMap(({ calls }) =>
      calls.slice(-RECENT_CALLS).flatMap((at) => {
        const source = this.#calls[at]!;
        const words = wordsOf(source.replyText);
        if (words.length === 0 || words.length >= FEW_WORDS) return [];
        if (!holds(words) && !holds(words.slice(0, Math.ceil(words.length / 2)))) return [];
        if (this.#wasAskedForSummary(source)) return [{ at, coverage: SUMMARY_ASKED, anchors: 1 }];
        const kept = this.#keepsTurnBefore(source, call) && holds(words);
        return kept ? [{ at, coverage: 1, anchors: FEW_ANCHORS }] : [];
      }),
    );
  }

  /** Does a new history end in the turn that `source` answered, without its last message and its reply? */
  #keepsTurnBefore(source: LinkCall, call: LinkCall): boolean {
    const { attachment } = this.#calls[this.#firstAttempt(source.at)]!;
    if (attachment.kind !== 'extends') return false;
    const before = this.#calls[attachment.of]!.entry.sampled;
    const last = this.#tree.content(call.turn);
    return before !== null && last !== null && last.key === replyKey(before.reply.parts);
  }

  /**
   * Of attempts at one turn that read the same, the one that the harness took for all anybody can tell: of those that
   * arrived before `call` the last to finish.
   */
  takenTwin(at: number, call: LinkCall): number {
    const first = this.#firstAttempt(at);
    const attempts = [first];
    for (const attempt of attempts) {
      const again = this.extendedBy(attempt).filter(
        (later) => this.#calls[later]!.attachment.kind === 'repeats',
      );
      if (attempts.length < ATTEMPTS) attempts.push(...again);
    }
    const key = (one: LinkCall): string => replyKey(one.entry.sampled!.reply.parts);
    const own = this.#calls[at]!;
    if (attempts.length === 1 || !own.sampled) return at;
    let taken = own;
    for (const other of attempts) {
      const twin = this.#calls[other]!;
      if (!twin.sampled || !twin.delivered || twin.finish > call.start || key(twin) !== key(own)) continue;
      if (!taken.delivered || twin.finish > taken.finish) taken = twin;
    }
    return taken.at;
  }

  /** The thread of a call, its first call, and what it leaves taken for the next. */
  settle(call: LinkCall): void {
    const { attachment } = call;
    this.#threads.join(call, this.#threadOf(call));
    if (attachment.kind === 'spawned') this.#taken.add(`${attachment.of}:${attachment.use}`);
    if (!call.sampled && call.entry.end?.status === 400 && call.thread !== -1) this.#refused.add(call.at);
    if ('of' in attachment) (this.#children[attachment.of] ??= []).push(call.at);
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
    const known = name === null ? null : threads.named(name);
    if (known !== null) return known;
    if (subagent) {
      const parent = call.identity.parentAgent ?? '';
      return threads.open(threads.named(parent) ?? (threads.all.length > 0 ? 0 : null), null, true);
    }
    if (threads.all.length === 0) return threads.open(null, null, false);
    return threads.withTools(call) ?? 0;
  }

  /** What was said to the call and not to any before it; `user`: without results of tools. */
  #freshTexts(call: LinkCall, who: 'all' | 'user' = 'all'): string[] {
    return this.#tree
      .between(call.attach, call.node)
      .flatMap(({ role, text }) =>
        role === 'assistant' || (role === 'tool' && who === 'user') ? [] : [text],
      );
  }

  #isSameAgent(source: LinkCall, call: LinkCall): boolean {
    const { agent } = source.identity;
    if (agent !== undefined && call.identity.agent !== undefined && agent !== call.identity.agent)
      return false;
    return this.#threads.all[source.thread]!.calls.slice(-RECENT_CALLS).includes(source.at);
  }

  /** A summary is written with the tools of the history that it replaces, or with none. */
  #hasSameTools(source: LinkCall, call: LinkCall): boolean {
    return source.tools === null || source.tools === call.tools || source.toolless === true;
  }

  #goesOn(at: number): boolean {
    return this.extendedBy(at).some((later) => {
      const { kind } = this.#calls[later]!.attachment;
      return kind === 'extends' || kind === 'spawned';
    });
  }

  #wasAskedForSummary(source: LinkCall): boolean {
    if (source.identity.requestClass === 'compaction' || source.attachment.kind === 'summarises') return true;
    if (source.node === -1) return false;
    // What its first message says is the summary before.
    if (this.#calls[this.#firstAttempt(source.at)]!.attachment.kind === 'compacted') return false;
    const asked = this.#tree.between(source.turn, source.node).filter(({ role }) => role === 'user');
    return (
      asksForSummary(asked.at(-1)?.text ?? '') ||
      (source.toolless === true && asksForSummary(source.systemText))
    );
  }

  #taskIn(call: LinkCall): TaskHit | null {
    // Two agents may be given the same words: what is not new counts as well.
    const text = this.#tree
      .between(0, call.node)
      .flatMap(({ role, text: said }) => (role === 'user' ? [said] : []))
      .join('\n');
    let best: (TaskHit & { rank: number }) | null = null;
    for (const found of this.#replies.tasksIn(text, call.at)) {
      if (found.coverage < TASK) continue;
      const hit = { ...found, at: this.takenTwin(found.at, call) };
      const source = this.#calls[hit.at]!;
      if (source.thread === -1) continue;
      const rank =
        (source.finish <= call.start ? 32 : 0) +
        (source.delivered ? 16 : 0) +
        (hit.coverage >= TASK_WHOLE ? 8 : 0) +
        (this.#taken.has(`${hit.at}:${hit.use}`) ? 0 : 4) +
        (this.#isOpen(hit.at) ? 2 : 0) +
        (this.#namesParent(call, source) ? 1 : 0);
      if (!best || rank > best.rank || (rank === best.rank && this.#isLater(hit, best)))
        best = { ...hit, rank };
    }
    return best;
  }

  /** Of two equally likely tool uses: in one reply the first, else that of the later reply. */
  #isLater(a: TaskHit, b: TaskHit): boolean {
    return a.at === b.at ? a.coverage > b.coverage : a.at > b.at;
  }

  /** Tool calls of that reply whose results no history holds yet. */
  #isOpen(at: number): boolean {
    return !this.extendedBy(at).some((later) => this.#calls[later]!.attachment.kind === 'extends');
  }

  #namesParent(call: LinkCall, source: LinkCall): boolean {
    const parent = call.identity.parentAgent ?? (call.identity.agent === undefined ? null : '');
    return parent !== null && this.#threads.named(parent) === source.thread;
  }

  #spawned(call: LinkCall, task: TaskHit): Attachment {
    const source = this.#calls[task.at]!;
    const evidence: Evidence[] = [task.coverage >= TASK_WHOLE ? 'task-text' : 'task-part'];
    if (this.#isOpen(task.at)) evidence.push('in-tool');
    const name = agentName(call);
    if (name === '' || (name !== null && this.#threads.named(name) !== null)) evidence.push('header-against');
    else if (name !== null) evidence.push('header-agent');
    if (!source.delivered) evidence.push('undelivered');
    return { kind: 'spawned', of: task.at, use: task.use, evidence };
  }

  /** Without a task in its words: headers say that an agent calls, and a tool call is open in which it may run. */
  #spawnedByHeader(call: LinkCall): Attachment | null {
    const name = agentName(call);
    if (name === null || name === '' || this.#threads.named(name) !== null) return null;
    const parent = this.#threads.named(call.identity.parentAgent ?? '');
    if (parent === null) return null;
    for (const at of this.#threads.all[parent]!.calls.slice(-4).reverse()) {
      const source = this.#calls[at]!;
      const use = source.uses.findIndex((_, i) => !this.#taken.has(`${at}:${i}`));
      if (use !== -1 && this.#isOpen(at) && source.finish <= call.start) {
        return { kind: 'spawned', of: at, use, evidence: ['header-agent', 'in-tool'] };
      }
    }
    return null;
  }

  /**
   * A conversation of other tools begins, or one of the same tools begins anew, while the record lost what was said
   * last: that reply started an agent, or was the summary that had been asked for.
   */
  #afterLostReply(call: LinkCall): Attachment | null {
    for (const { calls } of [...this.#threads.all].reverse().slice(0, RECENT_THREADS)) {
      const at = calls.at(-1);
      const last = at === undefined ? undefined : this.#calls[at]!;
      if (!last?.replyLost || last.finish > call.start || this.#isContinued(last.at)) continue;
      const sameTools = last.tools !== null && last.tools === call.tools;
      if (this.#wasAskedForSummary(last) && (sameTools || last.toolless === true)) {
        return { kind: 'compacted', of: last.at, evidence: ['summary-asked', 'reply-lost'] };
      }
      const agent = agentName(call);
      const named = agent !== null && agent !== '' && this.#threads.named(agent) === null;
      if (!sameTools && call.toolless === false && agent !== '') {
        const use = this.extendedBy(last.at).length;
        const evidence: Evidence[] = ['reply-lost', 'in-tool', ...(named ? (['header-agent'] as const) : [])];
        return { kind: 'spawned', of: last.at, use, evidence };
      }
    }
    return null;
  }

  #isContinued(at: number): boolean {
    return this.extendedBy(at).some((later) => this.#calls[later]!.attachment.kind !== 'spawned');
  }

  /** A tool-less request that holds a conversation as text and asks for its summary. */
  #summarises(call: LinkCall): Attachment | null {
    const { requestClass } = call.identity;
    if (call.toolless === false || requestClass === 'side' || !this.#anyTools) return null;
    if (this.#threads.all.length === 0) return null;
    const texts = this.#freshTexts(call);
    const asked = this.#summaries.has(call.at) || asksForSummary([call.systemText, ...texts].join('\n'));
    if (!asked && requestClass !== 'compaction' && this.#refused.size === 0) return null;
    const quoted = this.#replies
      .quotedIn(texts.join('\n'), call.at)
      .filter(({ at, coverage }) => coverage >= 0.5 && this.#calls[at]!.thread !== -1);
    const tasks = this.#replies
      .tasksIn(texts.join('\n'), call.at)
      .filter(({ at, coverage }) => coverage >= 0.5 && this.#calls[at]!.thread !== -1);
    const latest = Math.max(-1, ...quoted.map(({ at }) => at), ...tasks.map(({ at }) => at));
    // An agent may be asked for a summary of something else; then its task is all that it quotes.
    const itself = [...quoted, ...tasks].some(({ at }) => this.#goesOn(at) || this.#isTakenUp(at));
    const threads = new Set([...quoted, ...tasks].map(({ at }) => this.#calls[at]!.thread));
    const refused = this.#refusedCall(threads);
    const claimed = requestClass === 'compaction' || this.#summaries.has(call.at);
    if (!claimed && (asked ? !itself && refused === null : !itself || refused === null)) return null;
    const quotedEnd = latest === -1 ? null : this.#threads.lastOf(this.#calls[latest]!.thread);
    const of = refused ?? quotedEnd ?? this.#endOfOnlyMain();
    if (of === null) return null;
    const evidence: Evidence[] = [];
    if (latest !== -1) evidence.push('conversation-text');
    if (asked) evidence.push('summary-asked');
    if (requestClass === 'compaction') evidence.push('header-class');
    if (of === refused) evidence.push('refused');
    this.#refused.delete(of);
    return { kind: 'summarises', of, evidence };
  }

  /** A summary that stands in a history: a request that quotes it asks for its next version. */
  #isTakenUp(at: number): boolean {
    return this.extendedBy(at).some((later) => this.#calls[later]!.attachment.kind === 'compacted');
  }

  /** Headers name a summary that quotes nothing, because all of its history is kept beside it. */
  #endOfOnlyMain(): number | null {
    const [main, ...others] = this.#threads.all.filter(({ subagent }) => !subagent);
    return main && others.length === 0 ? this.#threads.lastOf(main.id) : null;
  }

  /** The last call that was refused and not yet answered by a summary, which is why a history is summed up. */
  #refusedCall(threads: ReadonlySet<number>): number | null {
    const all = [...this.#refused];
    return all.findLast((at) => threads.has(this.#calls[at]!.thread)) ?? all.at(-1) ?? null;
  }

  /** Outside the work: told from the request alone. What headers say of it counts only against tools. */
  #side(call: LinkCall): Attachment | null {
    if (call.fragment || call.identity.requestClass === 'compaction') return null;
    if (call.toolless === true && this.#anyTools) return { kind: 'side' };
    return call.identity.requestClass === 'side' && call.toolless === null ? { kind: 'side' } : null;
  }
}
