import { isCausal } from './causal-order.js';
import type { TreeEdge } from './types.js';

/**
 * Calls (given in the order of their arrival) so ordered, except that a cause stands before its effect whatever the clocks say: contents that repeat a
 * reply prove an order. `cyclic` are the calls for which edges leave no such order.
 */
export function causalSequence<T extends { call: number }>(
  arrived: readonly T[],
  edges: readonly TreeEdge[],
): { order: T[]; cyclic: number[] } {
  const rank = new Map(arrived.map(({ call }, i) => [call, i]));
  const successors: number[][] = arrived.map(() => []);
  const waits_C = new Int32Array(arrived.length);
  let inOrder = true;
  for (const { from, to, type } of edges) {
    const a = rank.get(from);
    const b = rank.get(to);
    if (a === undefined || b === undefined || !isCausal(type)) continue;
    successors[a]!.push(b);
    waits_C[b]!++;
    if (a >= b) inOrder = false;
  }
  if (inOrder) return { order: [...arrived], cyclic: [] };

  const ready = new MinHeap();
  const placed = new Uint8Array(arrived.length);
  const order: T[] = [];
  waits_C.forEach((waits, i) => {
    if (waits === 0) ready.push(i);
  });
  for (let i = ready.pop(); i !== undefined; i = ready.pop()) {
    placed[i] = 1;
    order.push(arrived[i]!);
    for (const next of successors[i]!) if (--waits_C[next]! === 0) ready.push(next);
  }
  const rest = arrived.filter((_, i) => placed[i] === 0);
  return { order: [...order, ...rest], cyclic: rest.map(({ call }) => call) };
}

/** Smallest number first. */
class MinHeap {
  readonly #items: number[] = [];

  push(item: number): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (items[above]! <= items[at]!) break;
      [items[above], items[at]] = [items[at]!, items[above]!];
      at = above;
    }
  }

  pop(): number | undefined {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (top === undefined || last === undefined || items.length === 0) return top;
    items[0] = last;
    for (let at = 0; ;) {
      let least = at;
      for (const below of [2 * at + 1, 2 * at + 2]) {
        if (below < items.length && items[below]! < items[least]!) least = below;
      }
      if (least === at) return top;
      [items[least], items[at]] = [items[at]!, items[least]!];
      at = least;
    }
  }
}
