/** What is put in order and has a time. */
export interface TimedCall {
  call: number;
  startTime: number;
  finishTime: number;
}

/** Below this share of calls in step, the numbers are no arrivals and only the times are left to go by. */
const NUMBERED = 0.5;

/**
 * Calls in the order in which they arrived: by number, which the gateway counted, because a clock can jump. A start time
 * that does not fit between its neighbours is moved there, with its finish; `moved` are those calls.
 */
export function inArrivalOrder<T extends TimedCall>(calls: readonly T[]): { order: T[]; moved: T[] } {
  const order = [...calls].sort((a, b) => a.call - b.call);
  const inStep = longestRising(order.map(({ startTime }) => startTime));
  if (inStep.length < NUMBERED * order.length) {
    return { order: order.sort((a, b) => a.startTime - b.startTime || a.call - b.call), moved: [] };
  }
  const moved: T[] = [];
  let next = 0;
  order.forEach((entry, i) => {
    if (inStep[next] === i) {
      next++;
      return;
    }
    const before = order[i - 1]?.startTime;
    const after = inStep[next] === undefined ? undefined : order[inStep[next]!]!.startTime;
    const to = before === undefined ? after! : after === undefined ? before : (before + after) / 2;
    entry.finishTime += to - entry.startTime;
    entry.startTime = to;
    moved.push(entry);
  });
  return { order, moved };
}

/** Indices of a longest non-decreasing subsequence. */
function longestRising(values: readonly number[]): number[] {
  // ends[k]: index of the smallest value on which a rising run of length k + 1 can end.
  const ends: number[] = [];
  const previous = new Int32Array(values.length).fill(-1);
  values.forEach((value, i) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[ends[middle]!]! <= value) low = middle + 1;
      else high = middle;
    }
    if (low > 0) previous[i] = ends[low - 1]!;
    ends[low] = i;
  });
  const out: number[] = [];
  for (let at = ends.at(-1) ?? -1; at !== -1; at = previous[at]!) out.push(at);
  return out.reverse();
}
