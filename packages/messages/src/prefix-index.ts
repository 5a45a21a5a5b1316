/** Which earlier call a message list continues, and how far. */
export interface PrefixMatch {
  call: number;
  /** Leading keys shared with that call's messages (its reply counts as one more). At least 1. */
  kept: number;
  /**
   * Where the match stops in that call: `reply` after its reply, `messages` at the end of its request,
   * `inside` somewhere earlier.
   */
  at: 'reply' | 'messages' | 'inside';
}

const ROOT = 0;
const NONE = -1;
/** Symbols per node in an edge key; parent × this + symbol stays an exact integer. */
const FANOUT = 2 ** 26;

/**
 * The one longest-prefix matcher, shared by the gateway (online) and tree recovery (offline): a trie over canonical
 * message keys. Each key is interned once, so an edge is an exact pair of integers and nothing has to be verified
 * after a hit. Adding from a delta costs only the new keys; finding costs the keys that match.
 */
export class PrefixIndex {
  readonly #symbols = new Map<string, number>();
  readonly #edges = new Map<number, number>();
  // One entry per node.
  #parent: number[] = [NONE];
  #depth: number[] = [0];
  #owner: number[] = [NONE];
  #endMessages: number[] = [NONE];
  #endReply: number[] = [NONE];
  /** The keys that `find` last walked along, and the nodes behind each: the next call is mostly the same and some more. */
  readonly #walkedKeys: string[] = [];
  readonly #walkedNodes: number[] = [];
  /** Per call: node at the end of its messages, and of its reply if it has one. */
  readonly #calls = new Map<number, { messages: number; reply: number }>();

  /** Calls added so far. */
  get size(): number {
    return this.#calls.size;
  }

  /** Holds the same calls; what is added to one afterwards is not in the other. */
  clone(): PrefixIndex {
    const copy = new PrefixIndex();
    for (const [key, symbol] of this.#symbols) copy.#symbols.set(key, symbol);
    for (const [edge, node] of this.#edges) copy.#edges.set(edge, node);
    for (const [call, entry] of this.#calls) copy.#calls.set(call, { ...entry });
    copy.#parent = [...this.#parent];
    copy.#depth = [...this.#depth];
    copy.#owner = [...this.#owner];
    copy.#endMessages = [...this.#endMessages];
    copy.#endReply = [...this.#endReply];
    return copy;
  }

  /**
   * Adds a call's messages: all of `keys`, or those after the first `from.kept` of an earlier call (the form in which
   * the record stores them). A later call with the same messages takes the older one's place in matches.
   * @throws RangeError when `from` names a call that was not added, or keeps more than it has
   */
  add(call: number, keys: readonly string[], from?: { call: number; kept: number }): void {
    let node = from ? this.#ancestor(from.call, from.kept) : ROOT;
    for (const key of keys) node = this.#grow(node, key, call);
    this.#endMessages[node] = call;
    this.#calls.set(call, { messages: node, reply: NONE });
  }

  /** Adds the reply of a call that was added before. Of equal replies to equal messages the last one counts. */
  addReply(call: number, key: string): void {
    const entry = this.#entry(call);
    entry.reply = this.#grow(entry.messages, key, call);
    this.#endReply[entry.reply] = call;
  }

  /** The call that shares the longest prefix with `keys`; null when not even the first key is known. */
  find(keys: readonly string[]): PrefixMatch | null {
    const node = this.#walk(keys);
    if (node === ROOT) return null;
    const kept = this.#depth[node]!;
    const messages = this.#endMessages[node]!;
    const reply = this.#endReply[node]!;
    // A list that ends where a request ended is that request again, whatever else ended there.
    if (kept === keys.length && messages !== NONE) return { call: messages, kept, at: 'messages' };
    if (reply !== NONE) return { call: reply, kept, at: 'reply' };
    if (messages !== NONE) return { call: messages, kept, at: 'messages' };
    return { call: this.#owner[node]!, kept, at: 'inside' };
  }

  /** The node as far down as `keys` lead. */
  #walk(keys: readonly string[]): number {
    const walked = this.#walkedKeys;
    const nodes = this.#walkedNodes;
    let at = 0;
    while (at < walked.length && at < keys.length && walked[at] === keys[at]) at++;
    walked.length = nodes.length = at;
    let node = at === 0 ? ROOT : nodes[at - 1]!;
    for (; at < keys.length; at++) {
      node = this.#step(node, keys[at]!);
      if (node === NONE) break;
      walked.push(keys[at]!);
      nodes.push(node);
    }
    return nodes.at(-1) ?? ROOT;
  }

  #step(node: number, key: string): number {
    const symbol = this.#symbols.get(key);
    return symbol === undefined ? NONE : (this.#edges.get(node * FANOUT + symbol) ?? NONE);
  }

  #grow(node: number, key: string, call: number): number {
    let symbol = this.#symbols.get(key);
    if (symbol === undefined) this.#symbols.set(key, (symbol = this.#symbols.size));
    const edge = node * FANOUT + symbol;
    const known = this.#edges.get(edge);
    if (known !== undefined) return known;
    const made = this.#parent.length;
    this.#edges.set(edge, made);
    this.#parent.push(node);
    this.#depth.push(this.#depth[node]! + 1);
    this.#owner.push(call);
    this.#endMessages.push(NONE);
    this.#endReply.push(NONE);
    return made;
  }

  #entry(call: number): { messages: number; reply: number } {
    const entry = this.#calls.get(call);
    if (!entry) throw new RangeError(`call ${call} is not in the index`);
    return entry;
  }

  #ancestor(call: number, depth: number): number {
    const entry = this.#entry(call);
    let node = entry.reply === NONE ? entry.messages : entry.reply;
    if (depth > this.#depth[node]!) {
      throw new RangeError(`call ${call} has ${this.#depth[node]} messages with its reply, not ${depth}`);
    }
    while (this.#depth[node]! > depth) node = this.#parent[node]!;
    return node;
  }
}
