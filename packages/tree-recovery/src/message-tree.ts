import { canonicalJson, canonicalKey, type Message } from '@treeward/messages';
import type { Json } from '@treeward/telemetry';

const ROOT = 0;
/** Symbols per node in an edge key; parent × this + symbol stays an exact integer. */
const FANOUT = 2 ** 26;
const NO_CALLS: readonly number[] = [];

/**
 * The conversations of a rollout as a trie over canonical message keys. Unlike the context tree it does not depend on
 * how prompts were tokenised or grafted: it is the second witness of what continued what.
 */
export class MessageTree {
  readonly #edges = new Map<number, number>();
  readonly #symbols = new Map<string, number>();
  readonly #parent: number[] = [-1];
  readonly #depth: number[] = [0];
  /** Node at the end of a reply → the calls that gave it there. */
  readonly #replies = new Map<number, number[]>();
  readonly #ends = new Map<number, { messages: number; reply: number | null }>();

  /**
   * Adds a call's messages as the record has them. Where the parent is not known, the kept part stands as one unknown
   * message of its own, so that calls that keep the same part of it still meet.
   */
  add(call: number, parent: number | null, kept: number, appended: readonly Json[]): void {
    let node = ROOT;
    if (parent !== null && kept > 0) {
      node = this.#ancestor(parent, kept) ?? this.#step(ROOT, `lost:${parent}:${kept}`);
    }
    for (const message of appended) node = this.#step(node, messageKey(message));
    this.#ends.set(call, { messages: node, reply: null });
  }

  /** Adds what the call answered, or (`null`) that it answered something that the record lost. */
  addReply(call: number, parts: readonly Json[] | null): void {
    const end = this.#ends.get(call);
    if (!end) return;
    const key = parts ? messageKey({ role: 'assistant', parts: [...parts] }) : `lost reply:${call}`;
    const node = this.#step(end.messages, key);
    end.reply = node;
    const list = this.#replies.get(node);
    if (list) list.push(call);
    else this.#replies.set(node, [call]);
  }

  /** Equal numbers: the same messages. Null for a call that was not added. */
  request(call: number): number | null {
    return this.#ends.get(call)?.messages ?? null;
  }

  /** The calls whose history and reply are the longest such prefix of this call's messages (several if they are equal). */
  continues(call: number): readonly number[] {
    const end = this.#ends.get(call);
    if (!end) return NO_CALLS;
    let node = end.messages;
    while (node !== ROOT && !this.#replies.has(node)) node = this.#parent[node]!;
    return this.#replies.get(node) ?? NO_CALLS;
  }

  #ancestor(call: number, depth: number): number | null {
    const end = this.#ends.get(call);
    if (!end) return null;
    let node = end.reply ?? end.messages;
    if (depth > this.#depth[node]!) return null;
    while (this.#depth[node]! > depth) node = this.#parent[node]!;
    return node;
  }

  #step(parent: number, key: string): number {
    let symbol = this.#symbols.get(key);
    if (symbol === undefined) this.#symbols.set(key, (symbol = this.#symbols.size));
    const edge = parent * FANOUT + symbol;
    const known = this.#edges.get(edge);
    if (known !== undefined) return known;
    const node = this.#parent.length;
    this.#edges.set(edge, node);
    this.#parent.push(parent);
    this.#depth.push(this.#depth[parent]! + 1);
    return node;
  }
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
