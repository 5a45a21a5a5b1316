import type { Evidence } from '../evidence.js';
import { replyKey } from '../message-tree.js';
import { replyWords, type Attachment, type LinkCall } from './link-call.js';
import { RECENT_CALLS, RECENT_THREADS, type Scene } from './scene.js';
import { wordsOf } from './texts.js';
import { asksForSummary } from './turns.js';

/** Share of a reply that stands in a new history before it counts as its summary: asked for as one, or not. */
const SUMMARY_ASKED = 0.3;
const SUMMARY_UNASKED = 0.5;
/** Anchors below which a text found by chance is likelier than a quotation. */
const FEW_ANCHORS = 2;
/** Letters of a summary below which it could stand anywhere by chance. */
const SUMMARY_LETTERS = 6;
/** Letters above which a text is no short one. */
const SHORT_LETTERS = 200;
/** Words below which a text has no anchors. */
const FEW_WORDS = 4;

export interface Summary {
  of: number;
  anchors: number;
  evidence: Evidence[];
}

/** Finds the reply that a new history holds as its own past, and the history that a request wants summed up. */
export class SummaryFinder {
  readonly #calls: Scene['calls'];
  readonly #tree: Scene['tree'];
  readonly #replies: Scene['replies'];
  readonly #threads: Scene['threads'];
  readonly #growth: Scene['growth'];
  readonly #anyTools: boolean;
  readonly #summaries: ReadonlySet<number>;
  /** Calls that were too long for the model, in their order. */
  readonly #refused = new Set<number>();
  /** Calls taken for side calls whose replies later histories hold as their summaries. */
  readonly lateSummaries = new Set<number>();

  constructor({ calls, tree, replies, threads, growth, anyTools, known }: Scene) {
    this.#calls = calls;
    this.#tree = tree;
    this.#replies = replies;
    this.#threads = threads;
    this.#growth = growth;
    this.#anyTools = anyTools;
    this.#summaries = known.summaries;
  }

  settle(call: LinkCall): void {
    if (!call.sampled && call.entry.end?.status === 400 && call.thread !== -1) this.#refused.add(call.at);
  }

  /** The reply whose text this history holds as its own past. */
  summaryIn(call: LinkCall): Summary | null {
    const text = [call.systemText, ...this.#freshTexts(call, 'user')].join('\n');
    let best: (Summary & { asked: boolean; coverage: number }) | null = null;
    const quoted = [...this.#replies.quotedIn(text, call.at), ...this.#shortSummariesIn(text, call)];
    for (const { at: any, coverage, anchors } of quoted) {
      const at = this.#growth.takenTwin(any, call);
      const source = this.#calls[at]!;
      if (source.uses.length > 0 || this.#growth.goesOn(at) || !this.#hasSameTools(source, call)) continue;
      const asked = this.wasAskedForSummary(source);
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

  /** A tool-less request that holds a conversation as text and asks for its summary. */
  summarises(call: LinkCall): Attachment | null {
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
    const itself = [...quoted, ...tasks].some(
      ({ at }) => this.#growth.goesOn(at) || this.#growth.isTakenUp(at),
    );
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

  /** By its headers, its last message, or the system prompt of a request without tools. */
  wasAskedForSummary(source: LinkCall): boolean {
    if (source.identity.requestClass === 'compaction' || source.attachment.kind === 'summarises') return true;
    if (source.node === -1) return false;
    // What its first message says is the summary before.
    if (this.#calls[this.#growth.firstAttempt(source.at)]!.attachment.kind === 'compacted') return false;
    const asked = this.#tree.between(source.turn, source.node).filter(({ role }) => role === 'user');
    return (
      asksForSummary(asked.at(-1)?.text ?? '') ||
      (source.toolless === true && asksForSummary(source.systemText))
    );
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
        if (this.wasAskedForSummary(source)) return [{ at, coverage: SUMMARY_ASKED, anchors: 1 }];
        const whole = holds(words) && words.length >= 2;
        const likely = this.#keepsTurnBefore(source, call) || this.#isLastWord(source, call);
        return whole && likely ? [{ at, coverage: 1, anchors: FEW_ANCHORS }] : [];
      }),
    );
  }

  /** Does a new history end in the turn that `source` answered, without its last message and its reply? */
  #keepsTurnBefore(source: LinkCall, call: LinkCall): boolean {
    const { attachment } = this.#calls[this.#growth.firstAttempt(source.at)]!;
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

  /** From a call whose reply a request quotes on to the last one that it may quote: as far as one follows the other. */
  #quotedEnd(from: number, text: string, call: LinkCall): number {
    const words = wordsOf(text).join(' ');
    const stands = (said: string): boolean => words.includes(wordsOf(said).join(' '));
    // The next version of a summary: what went on from that one is kept beside it.
    if (this.#growth.isTakenUp(from)) return this.#threads.lastOf(this.#calls[from]!.thread);
    for (let at = this.#growth.takenTwin(from, call); ;) {
      const next = this.#growth.extendedBy(at).findLast((later) => {
        const one = this.#calls[later]!;
        if (one.attachment.kind === 'spawned' || one.finish > call.start || !one.delivered) return false;
        const said = [one.replyText, ...one.uses.flatMap((use) => use.text.split('\n'))];
        return one.sampled && said.every(stands);
      });
      if (next === undefined) return at;
      at = next;
    }
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
}
