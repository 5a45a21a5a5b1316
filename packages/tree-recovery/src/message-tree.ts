import { canonicalJson, canonicalKey, type Message } from '@treeward/messages';
import type { Json, MessagesDelta } from '@treeward/telemetry';
import { readParts, type ToolUse } from './link/texts.js';

const ROOT = 0;
/** Symbols per node in an edge key; parent × this + symbol stays an exact integer. */
const FANOUT = 2 ** 26;
const NOBODY: readonly number[] = [];

/** A message of some conversation, once for all calls whose history holds it there. */
export interface MessageNode {
  role: 'user' | 'assistant' | 'tool' | 'unknown';
  text: string;
  uses: readonly ToolUse[];
  /** Whose reply this is known to be, whatever the conversation. Only on assistant messages. */
  key: string;
}

/** Where a call's messages stand. */
export interface MessagePlace {
  node: number;
  /** The last node that an earlier call had put there; what is behind it is new. */
  attach: number;
  /** The record lost the messages that this one's begin with. */
  fragment: boolean;
  /** System messages that no call before had sent. */
  systemText: string;
}

/**
 * The conversations of a rollout as a trie over canonical message keys. It does not depend on how prompts were tokenised
 * or grafted: it is the second witness of what continued what. System messages have no place in it, because harnesses
 * render them anew while the conversation goes on.
 *
 * Not a `PrefixIndex`: that answers where one list of keys continues, given in full. This one is asked about the nodes
 * themselves (who asked here, who answered here, what is new behind here), holds several owners of equal replies, and
 * takes lists whose beginning the record has lost.
 */
export class MessageTree {
  readonly #symbols = new Map<string, number>();
  /** As recorded, system messages included: what deltas count. */
  readonly #recorded = new Trie();
  /** Recorded node → node of the conversation. */
  readonly #shown: number[] = [ROOT];
  readonly #talk = new Trie();
  readonly #content: (MessageNode | null)[] = [null];
  readonly #requests: (number[] | undefined)[] = [undefined];
  readonly #replies: (number[] | undefined)[] = [undefined];
  readonly #lastReply: number[] = [ROOT];
  /** Nodes of conversations whose beginning is lost. */
  readonly #fragments = new Set<number>();
  /** Node → calls whose messages end in one user message behind it. */
  readonly #below: (number[] | undefined)[] = [undefined];
  /** Per call: recorded nodes at the end of its messages and of its reply, and where in the conversation it asked. */
  readonly #ends = new Map<number, { messages: number; reply: number | null; asked: number }>();

  /**
   * `at` is the caller's number of the call, `parent` that of the call its delta counts from. Where the parent is not
   * known, the kept part stands as one unknown message, so that calls that keep the same part of it still meet.
   * `isVolatile` says whether the last message, of the user, is no part of the conversation.
   */
  add(
    at: number,
    parent: number | null,
    delta: MessagesDelta,
    isVolatile: (last: MessageNode) => boolean,
  ): MessagePlace {
    let recorded = ROOT;
    let fragment = false;
    if (delta.parent !== null && delta.kept > 0) {
      const found = parent === null ? null : this.#ancestor(parent, delta.kept);
      fragment = found === null;
      recorded = found ?? this.#extend(ROOT, `lost:${delta.parent}:${delta.kept}`, lost());
      // It stands for that many messages: what grows from here counts them.
      if (fragment) this.#recorded.depth[recorded] = delta.kept;
    }
    const known = this.#talk.size;
    const systemTexts: string[] = [];
    for (const message of delta.appended) {
      const fresh = this.#recorded.size;
      recorded = this.#extendBy(recorded, message);
      if (recorded >= fresh && isMessage(message) && message.role === 'system')
        systemTexts.push(message.text);
    }
    let node = this.#shown[recorded]!;
    const last = this.#content[node];
    const above = this.#talk.parent[node]!;
    if (last?.role === 'user' && above > ROOT) {
      if (isVolatile(last)) node = above;
      else (this.#below[above] ??= []).push(at);
    }
    this.#ends.set(at, { messages: recorded, reply: null, asked: node });
    let attach = node;
    while (attach >= known) attach = this.#talk.parent[attach]!;
    (this.#requests[node] ??= []).push(at);
    return {
      node,
      attach,
      fragment: fragment || this.#fragments.has(node),
      systemText: systemTexts.join('\n'),
    };
  }

  /** Adds what the call answered, or (`null`) that the record lost what it answered. */
  addReply(at: number, parts: readonly Json[] | null): void {
    const end = this.#ends.get(at);
    if (!end) return;
    const message: Json = { role: 'assistant', parts: [...(parts ?? [])] };
    const key = parts ? messageKey(message) : `lost reply:${at}`;
    const content: MessageNode = parts ? contentOf(message as unknown as Message, key)! : lostReply();
    end.reply = this.#extend(end.messages, key, content);
    const node =
      this.#shown[end.messages] === end.asked
        ? this.#shown[end.reply]!
        : this.#say(end.asked, this.#symbol(key), content);
    (this.#replies[node] ??= []).push(at);
    this.#lastReply[node] = node;
  }

  /**
   * A node turns out to hold the reply of a call in another form than it was sampled in. `end`: the node up to which
   * messages have been put behind it.
   */
  adopt(node: number, at: number, end: number): void {
    (this.#replies[node] ??= []).push(at);
    const before = this.#lastReply[node]!;
    for (let below = end; ; below = this.#talk.parent[below]!) {
      if (this.#lastReply[below] === before || below === node) this.#lastReply[below] = node;
      if (below === node) return;
    }
  }

  parent(node: number): number {
    return this.#talk.parent[node]!;
  }

  content(node: number): MessageNode | null {
    return this.#content[node]!;
  }

  /** Calls whose messages end here. */
  requestsAt(node: number): readonly number[] {
    return this.#requests[node] ?? NOBODY;
  }

  /** Calls whose messages end in one message of the user behind this place. */
  requestsBelow(node: number): readonly number[] {
    return this.#below[node] ?? NOBODY;
  }

  /** Calls whose reply stands here. */
  repliesAt(node: number): readonly number[] {
    return this.#replies[node] ?? NOBODY;
  }

  /** The nearest reply at or above the node; the root if there is none. */
  lastReply(node: number): number {
    return this.#lastReply[node]!;
  }

  /** Messages from behind `from` (an ancestor, or the root) to `to`, in order. */
  between(from: number, to: number): MessageNode[] {
    const out: MessageNode[] = [];
    for (let at = to; at !== from && at !== ROOT; at = this.#talk.parent[at]!) out.push(this.#content[at]!);
    return out.reverse();
  }

  #ancestor(at: number, depth: number): number | null {
    const end = this.#ends.get(at);
    if (!end) return null;
    let node = end.reply ?? end.messages;
    if (depth > this.#recorded.depth[node]!) return null;
    while (this.#recorded.depth[node]! > depth) node = this.#recorded.parent[node]!;
    // Within what was lost no single message is known.
    return this.#recorded.depth[node] === depth ? node : null;
  }

  #extendBy(recorded: number, message: Json): number {
    const key = messageKey(message);
    return this.#extend(recorded, key, isMessage(message) ? contentOf(message, key) : unknown(message));
  }

  /** A step in both tries; `content` null for what has no place in the conversation. */
  #extend(recorded: number, key: string, content: MessageNode | null): number {
    const symbol = this.#symbol(key);
    const node = this.#recorded.step(recorded, symbol);
    if (this.#shown.length > node) return node;
    const above = this.#shown[recorded]!;
    const shown = content ? this.#say(above, symbol, content) : above;
    this.#shown.push(shown);
    if (key.startsWith('lost:')) this.#fragments.add(shown);
    return node;
  }

  #say(above: number, symbol: number, content: MessageNode): number {
    const shown = this.#talk.step(above, symbol);
    if (this.#content.length > shown) return shown;
    this.#content.push(content);
    this.#requests.push(undefined);
    this.#replies.push(undefined);
    this.#below.push(undefined);
    this.#lastReply.push(this.#lastReply[above]!);
    if (this.#fragments.has(above)) this.#fragments.add(shown);
    return shown;
  }

  #symbol(key: string): number {
    let symbol = this.#symbols.get(key);
    if (symbol === undefined) this.#symbols.set(key, (symbol = this.#symbols.size));
    return symbol;
  }
}

/** Nodes numbered in the order in which they appear; an edge is an exact pair of integers. */
class Trie {
  readonly #edges = new Map<number, number>();
  readonly parent: number[] = [-1];
  readonly depth: number[] = [0];

  get size(): number {
    return this.parent.length;
  }

  step(parent: number, symbol: number): number {
    const edge = parent * FANOUT + symbol;
    const known = this.#edges.get(edge);
    if (known !== undefined) return known;
    const node = this.parent.length;
    this.#edges.set(edge, node);
    this.parent.push(parent);
    this.depth.push(this.depth[parent]! + 1);
    return node;
  }
}

const lost = (): MessageNode => ({ role: 'unknown', text: '', uses: [], key: '' });
const lostReply = (): MessageNode => ({ ...lost(), role: 'assistant' });
const unknown = (message: Json): MessageNode => ({
  role: 'unknown',
  text: canonicalJson(message),
  uses: [],
  key: '',
});

function contentOf(message: Message, key: string): MessageNode | null {
  if (message.role === 'system') return null;
  if (message.role !== 'assistant') return { role: message.role, text: message.text, uses: [], key: '' };
  return { role: 'assistant', ...readParts(message.parts as unknown as Json[]), key };
}

/** The key under which a reply stands in later histories. */
export function replyKey(parts: readonly Json[]): string {
  return messageKey({ role: 'assistant', parts: [...parts] });
}

/** A message that is not of the canonical form (another writer's, a later minor's) is compared as JSON. */
function messageKey(message: Json): string {
  return isMessage(message) ? canonicalKey(message) : `?:${canonicalJson(message)}`;
}

function isMessage(value: Json | Message): value is Message {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { role, text, parts } = value as { role?: unknown; text?: unknown; parts?: unknown };
  if (role === 'system' || role === 'user' || role === 'tool') return typeof text === 'string';
  if (role !== 'assistant' || !Array.isArray(parts)) return false;
  return parts.every((part: unknown) => {
    if (typeof part !== 'object' || part === null) return false;
    const fields = part as { type?: unknown; text?: unknown; name?: unknown };
    return fields.type === 'text' ? typeof fields.text === 'string' : fields.type === 'tool_call';
  });
}
