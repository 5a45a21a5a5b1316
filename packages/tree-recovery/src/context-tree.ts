import {
  EMPTY_TOKEN_HASH,
  extendTokenHash,
  finishTokenHash,
  stepLane0,
  stepLane1,
} from '@treeward/telemetry';
import { TokenStore } from './token-store.js';

/** The node above every root: the empty context. It is not part of the finished tree. */
export const EMPTY_CONTEXT = 0;

/** A place on the path of a prompt: `offset` tokens into `node`, then tokens that have no place of their own yet. */
export interface Position {
  node: number;
  offset: number;
  pending: Int32Array;
}

/** Of several recorded replies that a prompt repeats in full, the one it grew from; null for none of them. */
export type ChooseAction = (actionNodes: readonly number[]) => number | null;

const NOTHING = new Int32Array(0);

/**
 * What each sampled token was conditioned on: a radix tree over prompts in which replies stand as atomic nodes.
 *
 * Observation nodes are shared and split. An action node belongs to one call, is never merged with an equal one and
 * never split: a prompt passes through it only if it repeats the reply to its end, and otherwise holds the repeated
 * part as an observation beside it. Every position carries the running token hash, so that a prompt is verified by
 * what it adds.
 */
export class ContextTree {
  readonly store = new TokenStore();
  // One entry per node. Spans are into `store`.
  readonly parent: number[] = [-1];
  readonly start: number[] = [0];
  readonly end: number[] = [0];
  readonly depth: number[] = [0];
  /** The call that sampled it; -1 for an observation. */
  readonly call: number[] = [-1];
  /** The last action at or above the node; -1 if none. */
  readonly lastAction: number[] = [-1];
  readonly #lane0: number[] = [EMPTY_TOKEN_HASH.lane0];
  readonly #lane1: number[] = [EMPTY_TOKEN_HASH.lane1];
  readonly #observations: (Map<number, number> | undefined)[] = [undefined];
  readonly #actions: (number[] | undefined)[] = [undefined];

  get size(): number {
    return this.parent.length;
  }

  /** Tokens on the path up to and including the node. */
  depthAfter(node: number): number {
    return this.depth[node]! + this.end[node]! - this.start[node]!;
  }

  isAction(node: number): boolean {
    return this.call[node] !== -1;
  }

  /** Replies sampled after the same prompt. */
  actionsAt(node: number): readonly number[] {
    return this.#actions[node] ?? [];
  }

  /** Has anything been placed after this node? */
  isExtended(node: number): boolean {
    return this.#observations[node] !== undefined || this.#actions[node] !== undefined;
  }

  /** Hash of the path up to and including the node, as `call.prompt` carries it. */
  hash(node: number): string {
    return finishTokenHash({
      lane0: this.#lane0[node]!,
      lane1: this.#lane1[node]!,
      length: this.depthAfter(node),
    });
  }

  /** Do `ids` begin with the whole path to the end of the node? Compared by hash. */
  isPrefix(node: number, ids: Int32Array): boolean {
    const depth = this.depthAfter(node);
    if (depth > ids.length) return false;
    const state = extendTokenHash(EMPTY_TOKEN_HASH, ids.subarray(0, depth));
    return finishTokenHash(state) === this.hash(node);
  }

  ids(node: number): Int32Array {
    return this.store.ids.subarray(this.start[node]!, this.end[node]!);
  }

  /** The replies after the same prompt that consist of the same tokens, itself included. */
  twins(action: number): number[] {
    const ids = this.ids(action);
    return this.actionsAt(this.parent[action]!).filter(
      (other) => other === action || equal(this.ids(other), ids),
    );
  }

  /** The first `depth` tokens on the path to the end of `node`; `depth` must not exceed it. */
  locate(node: number, depth: number): Position {
    let at = node;
    while (this.depth[at]! >= depth && at !== EMPTY_CONTEXT) at = this.parent[at]!;
    const offset = depth - this.depth[at]!;
    // Part of a reply is an observation wherever it is repeated, so it starts where the reply started.
    if (this.isAction(at) && offset < this.end[at]! - this.start[at]!) {
      return { node: this.parent[at]!, offset: -1, pending: this.ids(at).slice(0, offset) };
    }
    return { node: at, offset, pending: NOTHING };
  }

  /** Walks and grows the tree by `ids`; returns the node at whose end the prompt stands. */
  insert(from: Position, ids: Int32Array, choose: ChooseAction): number {
    let node = from.node;
    let rest = ids;
    if (from.pending.length > 0) {
      rest = new Int32Array(from.pending.length + ids.length);
      rest.set(from.pending);
      rest.set(ids, from.pending.length);
    } else if (from.offset >= 0 && from.offset < this.end[node]! - this.start[node]!) {
      const matched = this.#match(node, from.offset, rest);
      const stop = from.offset + matched;
      if (stop < this.end[node]! - this.start[node]!) node = this.#split(node, stop);
      rest = rest.subarray(matched);
    }
    while (rest.length > 0) {
      const repeated = this.actionsAt(node).filter((action) => {
        const length = this.end[action]! - this.start[action]!;
        return length <= rest.length && this.#match(action, 0, rest) === length;
      });
      const action = repeated.length > 0 ? choose(repeated) : null;
      if (action !== null) {
        node = action;
        rest = rest.subarray(this.end[action]! - this.start[action]!);
        continue;
      }
      const child = this.#observations[node]?.get(rest[0]!);
      if (child === undefined) return this.#add(node, rest, null, -1);
      const matched = this.#match(child, 0, rest);
      node = matched < this.end[child]! - this.start[child]! ? this.#split(child, matched) : child;
      rest = rest.subarray(matched);
    }
    return node;
  }

  /** One node for one sampled reply, whatever equal replies there are. */
  addAction(promptNode: number, call: number, ids: Int32Array, logprobs: Float32Array | null): number {
    return this.#add(promptNode, ids, logprobs, call);
  }

  #add(parent: number, ids: Int32Array, logprobs: Float32Array | null, call: number): number {
    const node = this.parent.length;
    const start = this.store.push(ids, logprobs);
    this.#place(parent, start, start + ids.length, this.depthAfter(parent), call);
    this.#rehash(node);
    if (call === -1) (this.#observations[parent] ??= new Map()).set(ids[0]!, node);
    else (this.#actions[parent] ??= []).push(node);
    return node;
  }

  /** The first `offset` tokens of an observation become a node above it, which is returned. */
  #split(node: number, offset: number): number {
    const above = this.parent[node]!;
    const start = this.start[node]!;
    const head = this.parent.length;
    this.#place(above, start, start + offset, this.depth[node]!, -1);
    this.#rehash(head);
    this.#observations[above]!.set(this.store.ids[start]!, head);
    this.#observations[head] = new Map([[this.store.ids[start + offset]!, node]]);
    this.parent[node] = head;
    this.start[node] = start + offset;
    this.depth[node] = this.depth[node]! + offset;
    return head;
  }

  #place(parent: number, start: number, end: number, depth: number, call: number): void {
    this.parent.push(parent);
    this.start.push(start);
    this.end.push(end);
    this.depth.push(depth);
    this.call.push(call);
    this.lastAction.push(call === -1 ? this.lastAction[parent]! : this.parent.length - 1);
    this.#lane0.push(0);
    this.#lane1.push(0);
    this.#observations.push(undefined);
    this.#actions.push(undefined);
  }

  #rehash(node: number): void {
    const ids = this.store.ids;
    let lane0 = this.#lane0[this.parent[node]!]!;
    let lane1 = this.#lane1[this.parent[node]!]!;
    for (let i = this.start[node]!; i < this.end[node]!; i++) {
      lane0 = stepLane0(lane0, ids[i]!);
      lane1 = stepLane1(lane1, ids[i]!);
    }
    this.#lane0[node] = lane0;
    this.#lane1[node] = lane1;
  }

  /** How many of `ids` equal the node's tokens from `offset` on. */
  #match(node: number, offset: number, ids: Int32Array): number {
    const stored = this.store.ids;
    const from = this.start[node]! + offset;
    const most = Math.min(ids.length, this.end[node]! - from);
    let i = 0;
    while (i < most && stored[from + i] === ids[i]) i++;
    return i;
  }
}

function equal(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i]);
}
