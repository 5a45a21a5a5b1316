import type { Evidence } from '../evidence.js';
import { replyKey, type MessageTree } from '../message-tree.js';
import { replyWords, type Attachment, type LinkCall } from './link-call.js';
import type { ReplyIndex, TaskHit } from './reply-index.js';
import { wordsOf, type ToolUse } from './texts.js';
import { agentName, type Threads } from './threads.js';
import { asksForSummary } from './turns.js';
import { toolCallId, type Witnesses } from './witnesses.js';

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
/** Letters above which a text is no short one. */
const SHORT_LETTERS = 200;
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

/** How agents are started in this rollout, as those show whose task stands in their first message. */
export interface Spawning {
  /** Names of the tools that start them, and hashes of the manifests they work with. */
  readonly tools: Set<string>;
  readonly childTools: Set<string>;
  /** Something was judged before this was known. */
  missed: boolean;
}

/** What an earlier pass has found out. */
export interface Known {
  summaries: ReadonlySet<number>;
  spawning: Spawning | null;
  witnesses: Witnesses;
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
  /** What is found out about how agents are started here. */
  readonly spawning: Spawning = { tools: new Set(), childTools: new Set(), missed: false };
  readonly #spawning: Spawning;
  readonly #witnesses: Witnesses;
  /** Calls taken for side calls whose replies later histories hold as their summaries. */
  readonly lateSummaries = new Set<number>();

  /** `summaries`: calls that are known to have written one. `spawning`: what is known of how agents are started. */
  constructor(
    calls: readonly LinkCall[],
    tree: MessageTree,
    replies: ReplyIndex,
    threads: Threads,
    anyTools: boolean,
    { summaries, spawning, witnesses }: Known,
  ) {
    this.#witnesses = witnesses;
    this.#summaries = summaries;
    this.#spawning = spawning ?? this.spawning;
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
    // An agent that is known, in a request without tools: not at its beginning.
    const aside = call.toolless === true && this.#anyTools && this.#threads.namedBy(call) !== null;
    const task = aside ? null : this.#taskIn(call);
    // A task may quote what an agent found; a summary may quote a task. The longer quotation explains the other.
    const asked = call.identity.compacted === true || summary?.evidence.includes('summary-asked');
    if (summary && (!task || (asked ? summary.anchors >= task.anchors : summary.anchors > task.anchors))) {
      return { kind: 'compacted', of: summary.of, evidence: summary.evidence };
    }
    if (task) return this.#spawned(call, task);
    return this.#side(call) ?? this.#spawnedInTool(call) ?? this.#afterLostReply(call);
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
      if (coverage < SUMMARY_UNASKED || anchors < FEW_ANCHORS) continue;
      for (const attempt of this.#tree.requestsAt(this.#calls[at]!.node)) this.lateSummaries.add(attempt);
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
        if (source.replyText.length > SHORT_LETTERS) return [];
        const words = replyWords(source).split(' ');
        if (source.replyText === '' || words.length >= 2 * FEW_WORDS) return [];
        if (!holds(words) && !holds(words.slice(0, Math.ceil(words.length / 2)))) return [];
        if (this.#wasAskedForSummary(source)) return [{ at, coverage: SUMMARY_ASKED, anchors: 1 }];
        const whole = holds(words) && words.length >= 2;
        const likely = this.#keepsTurnBefore(source, call) || this.#isLastWord(source, call);
        return whole && likely ? [{ at, coverage: 1, anchors: FEW_ANCHORS }] : [];
      }),
    );
  }

  /** Does a new history end in the turn that `source` answered, without its last message and its reply? */
  #keepsTurnBefore(source: LinkCall, call: LinkCall): boolean {
    const { attachment } = this.#calls[this.#firstAttempt(source.at)]!;
    if (attachment.kind !== 'extends') return false;
    const before = this.#calls[attachment.of]!.entry.sampled;
    const last = this.#tree.between(0, call.node).findLast(({ role }) => role === 'assistant');
    return before !== null && last !== undefined && last.key === replyKey(before.reply.parts);
  }

  /** Did an agent say that last, asked by a user behind results of its tools, before its history begins anew? */
  #isLastWord(source: LinkCall, call: LinkCall): boolean {
    const asked = source.node === -1 ? null : this.#tree.content(source.node);
    return (
      asked?.role === 'user' &&
      source.turn !== 0 &&
      source.delivered &&
      source.tools === call.tools &&
      source.finish <= call.start &&
      this.#threads.lastOf(source.thread) === source.at
    );
  }

  /** A call and all its repetitions. */
  attempts(first: number): number[] {
    const all = [first];
    for (const attempt of all) {
      const again = this.extendedBy(attempt).filter(
        (later) => this.#calls[later]!.attachment.kind === 'repeats',
      );
      if (all.length < ATTEMPTS) all.push(...again);
    }
    return all;
  }

  /**
   * Of attempts at one turn that read the same, the one that the harness took for all anybody can tell: of those that
   * arrived before `call` the last to finish.
   */
  takenTwin(at: number, call: LinkCall): number {
    const attempts = this.attempts(this.#firstAttempt(at));
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
    if (attachment.kind === 'spawned') {
      const { of, use, evidence } = attachment;
      this.#taken.add(`${of}:${use}`);
      if (evidence.includes('task-text')) this.#learnSpawning(call, this.#calls[of]!.uses[use]);
    }
    if (!call.sampled && call.entry.end?.status === 400 && call.thread !== -1) this.#refused.add(call.at);
    if ('of' in attachment) (this.#children[attachment.of] ??= []).push(call.at);
  }

  #learnSpawning(call: LinkCall, use: ToolUse | undefined): void {
    if (use) this.spawning.tools.add(use.name);
    if (call.tools !== null) this.spawning.childTools.add(call.tools);
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
    return source.tools === null || source.tools === call.tools || source.toolless !== false;
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
    const text = this.#saidTo(call);
    let best: (TaskHit & { rank: number }) | null = null;
    for (const found of this.#replies.tasksIn(text, call.at)) {
      if (found.coverage < TASK) continue;
      const hit = { ...found, at: this.takenTwin(found.at, call) };
      const source = this.#calls[hit.at]!;
      if (source.thread === -1) continue;
      const rank =
        (this.#isNamed(call, hit) ? 64 : 0) +
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
    const { agent, parentAgent } = call.identity;
    if (agent === undefined && parentAgent === undefined) return false;
    return this.#threads.parentNamedBy(call) === source.thread;
  }

  #spawned(call: LinkCall, task: TaskHit): Attachment {
    const source = this.#calls[task.at]!;
    const evidence: Evidence[] = [task.coverage >= TASK_WHOLE ? 'task-text' : 'task-part'];
    if (this.#isOpen(task.at)) evidence.push('in-tool');
    const name = agentName(call);
    if (name === '' || this.#threads.namedBy(call) !== null) evidence.push('header-against');
    else if (name !== null) evidence.push('header-agent');
    if (!source.delivered) evidence.push('undelivered');
    evidence.push(...this.#seen(call, task));
    return { kind: 'spawned', of: task.at, use: task.use, evidence };
  }

  /** Does the transcript name that tool call as what started the agent? */
  #isNamed(call: LinkCall, { at, use }: { at: number; use: number }): boolean {
    const start = this.#witnesses.startOf(call, this.#tree);
    return start !== null && toolCallId(this.#calls[at]!.uses[use]?.id ?? '') === start;
  }

  /** What transcript and commands say of a cause that the contents allow. */
  #seen(call: LinkCall, cause: { at: number; use: number }): Evidence[] {
    const evidence: Evidence[] = [];
    const use = this.#calls[cause.at]!.uses[cause.use];
    if (!use) return evidence;
    if (this.#isNamed(call, cause)) evidence.push('transcript');
    else if (this.#witnesses.startOf(call, this.#tree) !== null) evidence.push('transcript-against');
    if (this.#witnesses.isRunning(use, call.start)) evidence.push('exec');
    return evidence;
  }

  /**
   * Without a task in its words: an agent calls, as headers or its tools say, and a tool call is open in which it may
   * run, of the tool that is known to start agents if one is.
   */
  #spawnedInTool(call: LinkCall): Attachment | null {
    const name = agentName(call);
    const named = name !== null && name !== '' && this.#threads.namedBy(call) === null;
    const { tools, childTools } = this.#spawning;
    const likely = name === null && call.tools !== null && childTools.has(call.tools);
    if (!named && !likely) {
      if (name === null && call.turn === 0 && call.toolless === false) this.spawning.missed = true;
      return null;
    }
    const text = this.#saidTo(call);
    let best: { at: number; use: number; words: number; open: boolean; rank: number } | null = null;
    for (const at of this.#finishedBefore(call, named)) {
      const open = this.#isOpen(at);
      for (const [i, use] of this.#calls[at]!.uses.entries()) {
        if (this.#taken.has(`${at}:${i}`) || (tools.size > 0 && !tools.has(use.name))) continue;
        const words = Math.max(0, ...use.text.split('\n').map((said) => wordsHeld(text, said)));
        const isNamed = this.#isNamed(call, { at, use: i });
        if (!open && !isNamed && (words === 0 || tools.size === 0)) continue;
        const running = this.#witnesses.isRunning(use, call.start);
        const rank =
          (isNamed ? 1e6 : 0) + (running === true ? 1e5 : running === false ? -1e5 : 0) + 2 * words;
        if (!best || rank + Number(open) > best.rank)
          best = { at, use: i, words, open, rank: rank + Number(open) };
      }
    }
    if (tools.size === 0) this.spawning.missed = true;
    if (!best) return null;
    const evidence: Evidence[] = [];
    if (named) evidence.push('header-agent');
    if (best.open) evidence.push('in-tool');
    if (tools.size > 0) evidence.push('agent-tool');
    if (best.words > 0) evidence.push('task-part');
    evidence.push(...this.#seen(call, best));
    return { kind: 'spawned', of: best.at, use: best.use, evidence };
  }

  /** Replies, the latest first, that were there when that call began: of the parent that headers name, or of anybody. */
  #finishedBefore(call: LinkCall, named: boolean): number[] {
    const parent = this.#threads.parentNamedBy(call);
    const threads = named ? (parent === null ? [] : [this.#threads.all[parent]!]) : this.#threads.all;
    const there = threads
      .slice(-RECENT_THREADS)
      .flatMap(({ calls }) => calls.slice(-RECENT_CALLS))
      .filter((at) => {
        const { finish, delivered, sampled } = this.#calls[at]!;
        return delivered && sampled && finish <= call.start;
      });
    return [...new Set(there.map((at) => this.takenTwin(at, call)))].sort((a, b) => b - a);
  }

  /** All that users said to a call, old and new. */
  #saidTo(call: LinkCall): string {
    return this.#tree
      .between(0, call.node)
      .flatMap(({ role, text }) => (role === 'user' ? [text] : []))
      .join('\n');
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
      const parent = agentName(call) === null ? last.thread : this.#threads.parentNamedBy(call);
      if (this.#wasAskedForSummary(last) && (sameTools || last.toolless === true)) {
        return { kind: 'compacted', of: last.at, evidence: ['summary-asked', 'reply-lost'] };
      }
      const agent = agentName(call);
      const named = agent !== null && agent !== '' && this.#threads.namedBy(call) === null;
      if (!sameTools && call.toolless === false && agent !== '' && parent === last.thread) {
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
    const end = latest === -1 ? null : this.#quotedEnd(latest, texts.join('\n'), call);
    // An agent may be asked for a summary of something else; then its task is all that it quotes.
    const itself = [...quoted, ...tasks].some(({ at }) => this.#goesOn(at) || this.#isTakenUp(at));
    const threads = new Set([...quoted, ...tasks].map(({ at }) => this.#calls[at]!.thread));
    const refused = this.#refusedCall(threads);
    const claimed = requestClass === 'compaction' || this.#summaries.has(call.at);
    if (!claimed && (asked ? !itself && refused === null : !itself || refused === null)) return null;
    const of = refused ?? end ?? this.#endOfOnlyMain();
    if (of === null) return null;
    const evidence: Evidence[] = [];
    if (latest !== -1) evidence.push('conversation-text');
    if (asked) evidence.push('summary-asked');
    if (requestClass === 'compaction') evidence.push('header-class');
    if (of === refused) evidence.push('refused');
    this.#refused.delete(of);
    return { kind: 'summarises', of, evidence };
  }

  /** From a call whose reply a request quotes on to the last one that it may quote: as far as one follows the other. */
  #quotedEnd(from: number, text: string, call: LinkCall): number {
    const words = wordsOf(text).join(' ');
    const stands = (said: string): boolean => words.includes(wordsOf(said).join(' '));
    // The next version of a summary: what went on from that one is kept beside it.
    if (this.#isTakenUp(from)) return this.#threads.lastOf(this.#calls[from]!.thread);
    for (let at = this.takenTwin(from, call); ;) {
      const next = this.extendedBy(at).findLast((later) => {
        const one = this.#calls[later]!;
        if (one.attachment.kind === 'spawned' || one.finish > call.start || !one.delivered) return false;
        const said = [one.replyText, ...one.uses.flatMap((use) => use.text.split('\n'))];
        return one.sampled && said.every(stands);
      });
      if (next === undefined) return at;
      at = next;
    }
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

/** Words that a text shares with the beginning of a task, in their order. */
function wordsHeld(text: string, task: string): number {
  const all = ` ${wordsOf(text).join(' ')} `;
  const words = wordsOf(task);
  let count = 0;
  while (count < words.length && all.includes(` ${words.slice(0, count + 1).join(' ')} `)) count++;
  return count;
}
