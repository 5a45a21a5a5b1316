import type { Evidence } from '../evidence.js';
import { replyKey, type MessageNode, type MessageTree } from '../message-tree.js';
import { Growth } from './growth.js';
import { sameSpeaker, type Attachment, type LinkCall } from './link-call.js';
import { ReplyIndex } from './reply-index.js';
import { RootClassifier } from './roots.js';
import type { Known, Spawning } from './scene.js';
import { Threads } from './threads.js';
import { asksAgain, isEdited, sameButVolatile } from './turns.js';

/** Earlier calls of one turn that a new one is compared with. */
const RECENT = 8;
/** Calls with equal messages, or equal replies to them, that are told apart. */
const OWNERS = 64;

/**
 * First pass, in causal order: what each call attaches to, judged by what was known when it started. Messages come
 * before tokens, because a wrong graft repeats its mistake in the tokens.
 */
export class Attacher {
  readonly threads = new Threads();
  /** Calls whose last message later histories leave out before their reply: it was no part of the conversation. */
  readonly lostLast = new Set<number>();
  readonly #calls: readonly LinkCall[];
  readonly #positionOf: ReadonlyMap<number, number>;
  readonly #tree: MessageTree;
  readonly #replies: ReplyIndex;
  readonly #roots: RootClassifier;
  readonly #growth: Growth;
  readonly #byPrompt = new Map<number, number>();
  readonly #byTurn = new Map<number, number[]>();
  readonly #recentRoots: number[] = [];
  readonly #seekLostLast: boolean;

  /** `calls` grows as calls are attached. `seekLostLast`: also find what `lostLast` holds. */
  constructor(
    calls: readonly LinkCall[],
    positionOf: ReadonlyMap<number, number>,
    tree: MessageTree,
    anyTools: boolean,
    seekLostLast: boolean,
    known: Known,
  ) {
    this.#seekLostLast = seekLostLast;
    this.#calls = calls;
    this.#positionOf = positionOf;
    this.#tree = tree;
    this.#replies = new ReplyIndex(calls, (call) => this.#keyOf(call));
    this.#growth = new Growth(calls);
    const { threads } = this;
    const replies = this.#replies;
    this.#roots = new RootClassifier({
      calls,
      tree,
      replies,
      threads,
      growth: this.#growth,
      anyTools,
      known,
    });
  }

  /** Calls taken for side calls whose replies later histories hold as their summaries. */
  get lateSummaries(): ReadonlySet<number> {
    return this.#roots.summaries.lateSummaries;
  }

  /** How agents are started here. */
  get spawning(): Spawning {
    return this.#roots.spawns.spawning;
  }

  attach(call: LinkCall): void {
    const attachment = this.#judge(call);
    // What goes on from a call outside the work is outside it as well.
    const outside = 'of' in attachment && this.#calls[attachment.of]!.thread === -1;
    call.attachment = outside ? { kind: 'side' } : attachment;
    this.#roots.settle(call);
    this.#remember(call);
  }

  #judge(call: LinkCall): Attachment {
    const repeat = this.#repeats(call);
    if (repeat) return repeat;
    if (call.node === -1) return this.#byTokens(call, []) ?? { kind: 'root' };
    const changed = this.#changedReply(call);
    if (changed && changed.kind !== 'extends') return changed;
    const parent = changed ?? this.#historyOf(call);
    const rewritten = this.#rewritten(call, parent?.of ?? null);
    if (rewritten) return rewritten;
    if (parent) return parent;
    if (call.fragment) return this.#byTokens(call, []) ?? this.#byGraft(call) ?? { kind: 'root' };
    return (
      this.#roots.classify(call) ??
      this.#byTokens(call, ['tokens-elsewhere']) ??
      this.#roots.unexplained(call)
    );
  }

  /** The same turn sampled again, word for word or but for volatile text. */
  #repeats(call: LinkCall): Attachment | null {
    const sameMessages =
      call.node === -1
        ? undefined
        : this.#tree
            .requestsAt(call.node)
            .slice(-OWNERS)
            .findLast((at) => at !== call.at && sameSpeaker(this.#calls[at]!, call));
    const sameTokens = call.promptNode === -1 ? undefined : this.#byPrompt.get(call.promptNode);
    if (sameMessages !== undefined) {
      const other = call.turn === 0 ? this.#roots.spawns.otherChild(call, this.#calls[sameMessages]!) : null;
      if (other) return other;
      const evidence: Evidence[] = ['same-messages'];
      if (sameTokens !== undefined && this.#calls[sameMessages]!.promptNode === call.promptNode) {
        evidence.push('same-tokens');
      }
      return { kind: 'repeats', of: sameMessages, evidence };
    }
    if (sameTokens !== undefined) {
      const earlier = this.#calls[sameTokens]!;
      // Tokens decide alone only where messages cannot speak.
      if (call.node === -1 || earlier.node === -1) {
        return { kind: 'repeats', of: sameTokens, evidence: ['same-tokens'] };
      }
    }
    return this.#repeatsInOtherWords(call);
  }

  #repeatsInOtherWords(call: LinkCall): Attachment | null {
    if (call.node === -1) return null;
    const siblings = call.turn === 0 ? this.#recentRoots : (this.#byTurn.get(call.turn) ?? []);
    const turn = this.#turnOf(call);
    for (const at of siblings.slice(-RECENT).reverse()) {
      const earlier = this.#calls[at]!;
      if (!sameSpeaker(earlier, call) || earlier.fragment !== call.fragment) continue;
      // An attempt that was repeated already is not the one before this.
      if (this.#growth.extendedBy(at).some((later) => this.#calls[later]!.attachment.kind === 'repeats'))
        continue;
      const lost = !earlier.delivered || !earlier.sampled;
      const before = this.#turnOf(earlier);
      const again = lost
        ? asksAgain(before, turn, call.turn === 0)
        : sameButVolatile(before, turn) && call.turn !== 0;
      if (again) {
        return { kind: 'repeats', of: at, evidence: ['volatile'] };
      }
    }
    return null;
  }

  #turnOf(call: LinkCall) {
    return this.#tree.between(call.turn, call.node);
  }

  /** The call whose history and reply these messages go on from. */
  #historyOf(call: LinkCall): (Attachment & { kind: 'extends' }) | null {
    const owner = this.#ownerOf(call, this.#withRepetitions(this.#tree.repliesAt(call.turn)));
    if (!owner) return null;
    const evidence: Evidence[] = [owner.replyLost ? 'reply-lost' : 'messages'];
    return { kind: 'extends', of: owner.at, evidence: [...evidence, ...this.#corroborate(call, owner)] };
  }

  /**
   * Behind messages that were once asked stands a reply in another form, or that of a repetition in other words, or
   * their last message is gone.
   */
  #changedReply(call: LinkCall): Attachment | null {
    const places: number[] = [];
    for (let at = call.node; at !== call.turn && at !== 0; at = this.#tree.parent(at)) {
      if (this.#tree.content(at)?.role === 'assistant') places.push(at);
    }
    for (const next of places) {
      const message = this.#tree.content(next)!;
      const asked = this.#askedBefore(call, next, message);
      if (!asked) continue;
      const same = this.#keyOf(asked) === message.key;
      // The texts of several replies in one message: their history was rendered anew.
      const held = same ? asked.at : this.#lastHeld(asked.at, call, [message]);
      if (held !== asked.at) {
        const turns = places.map((at) => this.#tree.content(at)!).reverse();
        const last = Math.max(held, this.#replyIn(turns, call) ?? -1);
        return { kind: 'rewritten', of: this.#lastHeld(last, call, turns), evidence: ['merged'] };
      }
      this.#tree.adopt(next, asked.at, call.node);
      call.turn = this.#tree.lastReply(call.node);
      const evidence: Evidence[] = [asked.replyLost ? 'reply-lost' : same ? 'messages' : 'reply-edited'];
      return { kind: 'extends', of: asked.at, evidence: [...evidence, ...this.#corroborate(call, asked)] };
    }
    return null;
  }

  /** The call that got this message as its reply where the message stands now. */
  #askedBefore(call: LinkCall, next: number, message: MessageNode): LinkCall | null {
    const place = this.#tree.parent(next);
    const asked = this.#attempts(call, place).findLast(
      (one) =>
        one.replyLost ||
        this.#keyOf(one) === message.key ||
        isEdited(message, { text: one.replyText, uses: one.uses }),
    );
    if (asked || !this.#seekLostLast) return asked ?? null;
    const longer = this.#tree
      .requestsBelow(place)
      .slice(-RECENT)
      .map((at) => this.#calls[at]!)
      .findLast((one) => one.at !== call.at && this.#keyOf(one) === message.key && sameSpeaker(one, call));
    if (!longer) return null;
    this.lostLast.add(longer.at);
    return longer;
  }

  /** Also repetitions in other words that got an equal reply. */
  #withRepetitions(owners: readonly number[]): readonly number[] {
    const first = owners.at(-1);
    if (first === undefined) return owners;
    const key = this.#keyOf(this.#calls[first]!);
    const again = this.#growth
      .extendedBy(first)
      .filter(
        (at) => this.#calls[at]!.attachment.kind === 'repeats' && this.#keyOf(this.#calls[at]!) === key,
      );
    return again.length === 0 ? owners : [...owners, ...again.filter((at) => !owners.includes(at))];
  }

  #keyOf({ entry: { sampled } }: LinkCall): string | null {
    return sampled ? replyKey(sampled.reply.parts) : null;
  }

  /** Calls that asked here, and repetitions of them in other words, in their order. */
  #attempts(call: LinkCall, request: number): LinkCall[] {
    const asked = this.#tree
      .requestsAt(request)
      .slice(-RECENT)
      .filter((at) => at !== call.at);
    const all = new Set(asked);
    for (const at of all) {
      for (const later of this.#growth.extendedBy(at)) {
        if (this.#calls[later]!.attachment.kind === 'repeats' && all.size < OWNERS) all.add(later);
      }
      const { attachment } = this.#calls[at]!;
      if (attachment.kind === 'repeats') all.add(attachment.of);
    }
    return [...all]
      .sort((a, b) => a - b)
      .map((at) => this.#calls[at]!)
      .filter((one) => sameSpeaker(one, call));
  }

  /** Of several calls with equal replies to equal messages: the one in the tokens, then one that arrived, then the last to finish. */
  #ownerOf(call: LinkCall, owners: readonly number[]): LinkCall | null {
    let best: LinkCall | null = null;
    for (const at of owners.slice(-OWNERS)) {
      const owner = this.#calls[at]!;
      if (at === call.at || !sameSpeaker(owner, call)) continue;
      if (owner.at === call.byTokens && owner.delivered) return owner;
      const better = !best || owner.delivered > best.delivered;
      if (better || (owner.delivered === best!.delivered && owner.finish >= best!.finish)) best = owner;
    }
    return best;
  }

  #corroborate(call: LinkCall, owner: LinkCall): Evidence[] {
    const evidence: Evidence[] = [];
    if (call.byTokens === owner.at) evidence.push('tokens');
    else if (call.byTokens !== null && call.byTokens > owner.at) evidence.push('tokens-elsewhere');
    else if (call.promptNode !== -1 && owner.promptNode !== -1) evidence.push('tokens-renewed');
    const { prompt } = call.entry;
    if (prompt?.graft.reason === 'reply') {
      evidence.push(prompt.prompt.parent === owner.entry.call ? 'graft' : 'graft-elsewhere');
    }
    if (!owner.delivered) evidence.push('undelivered');
    return evidence;
  }

  #byTokens(call: LinkCall, doubts: readonly Evidence[]): Attachment | null {
    if (call.byTokens === null || call.byTokens >= call.at) return null;
    const owner = this.#calls[call.byTokens]!;
    const evidence = this.#corroborate(call, owner);
    return { kind: 'extends', of: owner.at, evidence: [...evidence, ...doubts] };
  }

  #byGraft(call: LinkCall): Attachment | null {
    const graft = call.entry.prompt;
    if (graft?.graft.reason !== 'reply' || graft.prompt.parent === null) return null;
    const of = this.#positionOf.get(graft.prompt.parent);
    return of === undefined || of >= call.at ? null : { kind: 'extends', of, evidence: ['graft'] };
  }

  /** Replies that stand in this history behind the place where it leaves the known ones: it was rendered anew. */
  #rewritten(call: LinkCall, parent: number | null): Attachment | null {
    const fresh = this.#tree.between(call.turn, call.node);
    const turns = fresh.filter(({ role }) => role === 'assistant');
    if (turns.length === 0) return null;
    let found = this.#replyIn(turns, call);
    let evidence: Evidence = 'replies';
    if (found === null) {
      evidence = 'merged';
      for (let i = turns.length - 1; i >= 0 && found === null; i--) {
        found = this.#replies.partOf(turns[i]!, call.at);
      }
    }
    // A reply that was only touched up is no other history.
    if (found === null || found === parent || (parent !== null && found < parent)) return null;
    // What was kept beside a summary was said before it.
    const summary = this.#roots.summaries.summaryIn(call);
    if (summary && summary.of > found) return null;
    const of = this.#lastHeld(found, call, turns);
    const source = this.#calls[of]!;
    // Where both beginnings are lost the reply says enough: it goes on from there.
    const bothLost = call.fragment && (source.fragment || source.node === -1);
    if (bothLost && turns.at(-1)!.key === this.#keyOf(source)) {
      return { kind: 'extends', of, evidence: ['reply', ...this.#corroborate(call, source)] };
    }
    return { kind: 'rewritten', of, evidence: [evidence] };
  }

  /** The last of these turns that is a reply as it was given: whose it is. */
  #replyIn(turns: readonly MessageNode[], call: LinkCall): number | null {
    let found: number | null = null;
    for (let i = turns.length - 1; i >= 0 && found === null; i--) {
      found = this.#replies.replyOf(turns[i]!, call.at);
    }
    return found === null ? null : this.#growth.takenTwin(found, call);
  }

  /**
   * From a call whose reply the history holds on to the last one that it holds. A lost reply is taken for what stands
   * in its place.
   */
  #lastHeld(found: number, call: LinkCall, held: readonly MessageNode[]): number {
    const text = held.map((turn) => turn.text).join('\n');
    const uses = new Set(held.flatMap((turn) => turn.uses.map((use) => use.text)));
    const key = this.#keyOf(this.#calls[found]!);
    let left = held.length - 1 - held.findLastIndex((turn) => turn.key === key);
    for (let at = found; ; left--) {
      const turns = this.#growth
        .extendedBy(at)
        .filter((later) => this.#calls[later]!.attachment.kind === 'extends')
        .flatMap((later) => this.#growth.attempts(later));
      const next = turns.findLast((later) => {
        const one = this.#calls[later]!;
        if (one.replyLost) return left > 0 && left < held.length;
        return (
          one.sampled &&
          (one.replyText !== '' || one.uses.length > 0) &&
          text.includes(one.replyText.trim()) &&
          one.uses.every((use) => uses.has(use.text))
        );
      });
      if (next === undefined) return at;
      at = next;
    }
  }

  #remember(call: LinkCall): void {
    // Nothing of the work is compared with what is outside it.
    if (call.attachment.kind === 'side') return;
    if (call.promptNode !== -1) this.#byPrompt.set(call.promptNode, call.at);
    if (call.node === -1) return;
    if (call.turn === 0) {
      if (call.attachment.kind === 'extends') return;
      this.#recentRoots.push(call.at);
      if (this.#recentRoots.length > RECENT) this.#recentRoots.shift();
      return;
    }
    const list = this.#byTurn.get(call.turn);
    if (!list) this.#byTurn.set(call.turn, [call.at]);
    else {
      list.push(call.at);
      if (list.length > RECENT) list.shift();
    }
  }
}
