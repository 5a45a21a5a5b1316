import type { PassInput } from '../model/decoder.js';
import { NEVER } from './pack-calls.js';
import type { PackedCalls, PackedTrees } from '../types.js';

/**
 * Whole rollouts as a history critic reads them: a token sees its ancestors and everything whose call had finished before its
 * own call started. A call's first value is read at a state of its own, since a retry shares its prompt's tokens with the
 * failed attempt but not its history. Rollouts are not merged, nor are equal draws: their histories differ.
 */
export interface HistoryPass extends PassInput {
  /** Packed tokens, in the order of `reads_U`, whose values the reads give. */
  source_M: Int32Array;
}

/** @param wanted packed tokens; each of an action row of a call */
export function historyPasses(
  batch: PackedTrees,
  calls: PackedCalls,
  wanted: readonly number[],
  budget: number,
): HistoryPass[] {
  const wantedSet = new Set(wanted);
  const rowsOf = new Map<number, number[]>();
  batch.rollout_B.forEach((rollout, row) => {
    const rows = rowsOf.get(rollout);
    if (rows) rows.push(row);
    else rowsOf.set(rollout, [row]);
  });
  const size = (rows: readonly number[]): number =>
    rows.reduce((sum, row) => sum + batch.rowStart_B1[row + 1]! - batch.rowStart_B1[row]!, 0);
  const passes: HistoryPass[] = [];
  let group: { rollout: number; rows: number[] }[] = [];
  let total = 0;
  const flush = (): void => {
    if (group.length) passes.push(passOf(batch, calls, wantedSet, group));
    group = [];
    total = 0;
  };
  calls.rollout_R.forEach((rollout, r) => {
    const rows = rowsOf.get(rollout) ?? [];
    const some = rows.some((row) => {
      for (let t = batch.rowStart_B1[row]!; t < batch.rowStart_B1[row + 1]!; t++)
        if (wantedSet.has(t)) return true;
      return false;
    });
    if (!some) return;
    if (group.length && total + size(rows) > budget) flush();
    group.push({ rollout: r, rows: depthFirst(batch, rows) });
    total += size(rows);
  });
  flush();
  return passes;
}

/** Rows of one rollout, each subtree a stretch. */
function depthFirst(batch: PackedTrees, rows: readonly number[]): number[] {
  const children = new Map<number, number[]>();
  for (const row of rows) {
    const parent = batch.parent_B?.[row] ?? -1;
    const list = children.get(parent);
    if (list) list.push(row);
    else children.set(parent, [row]);
  }
  const out: number[] = [];
  const stack = [...(children.get(-1) ?? [])].reverse();
  while (stack.length) {
    const row = stack.pop()!;
    out.push(row);
    stack.push(...[...(children.get(row) ?? [])].reverse());
  }
  return out;
}

function passOf(
  batch: PackedTrees,
  calls: PackedCalls,
  wanted: ReadonlySet<number>,
  group: readonly { rollout: number; rows: readonly number[] }[],
): HistoryPass {
  const rows = group.flatMap((member) => member.rows);
  const length = (row: number): number => batch.rowStart_B1[row + 1]! - batch.rowStart_B1[row]!;
  const K = rows.reduce((sum, row) => sum + length(row), 0);
  const parent = (row: number): number => batch.parent_B?.[row] ?? -1;
  const firstOf = new Map<number, number>();
  const depthAfter = new Map<number, number>();
  const endOf = new Map<number, number>();
  let at = 0;
  for (const row of rows) {
    firstOf.set(row, at);
    at += length(row);
    depthAfter.set(row, (depthAfter.get(parent(row)) ?? 0) + length(row));
    for (let up = row; up >= 0; up = parent(up)) endOf.set(up, at);
  }
  /** The last token of a row's context, itself included; −1 where there is none. */
  const lastOf = (row: number): number => {
    for (let up = row; up >= 0; up = parent(up)) if (length(up)) return firstOf.get(up)! + length(up) - 1;
    return -1;
  };
  const tokens: number[] = [];
  const depth: number[] = [];
  const position: number[] = [];
  const start: number[] = [];
  const firstKey: number[] = [];
  const lastKey: number[] = [];
  const end_K: number[] = [];
  const finish_K: number[] = [];
  /** Where a rollout's keys lie. */
  const range = new Map<number, [number, number]>();
  for (const { rollout, rows: own } of group) {
    const from = tokens.length;
    const to = from + own.reduce((sum, row) => sum + length(row), 0);
    range.set(rollout, [from, to]);
    for (const row of own) {
      const call = calls.call_B[row]!;
      const before = depthAfter.get(row)! - length(row);
      for (let i = 0; i < length(row); i++) {
        position.push(tokens.length);
        tokens.push(batch.tokens_T[batch.rowStart_B1[row]! + i]!);
        depth.push(before + i);
        start.push(call < 0 ? 0 : calls.start_C[call]!);
        end_K.push(endOf.get(row)!);
        finish_K.push(call < 0 ? NEVER : calls.finish_C[call]!);
        firstKey.push(from);
        lastKey.push(to);
      }
    }
  }
  const reads: number[] = [];
  const source: number[] = [];
  for (const { rollout } of group) {
    for (let c = calls.callOffset_R1[rollout]!; c < calls.callOffset_R1[rollout + 1]!; c++) {
      const row = calls.action_C[c]!;
      if (row < 0) continue;
      for (let i = 0; i < length(row); i++) {
        if (!wanted.has(batch.rowStart_B1[row]! + i)) continue;
        source.push(batch.rowStart_B1[row]! + i);
        if (i > 0) {
          reads.push(firstOf.get(row)! + i - 1);
          continue;
        }
        const last = parent(row) < 0 ? -1 : lastOf(parent(row));
        reads.push(tokens.length);
        position.push(last);
        tokens.push(last < 0 ? 0 : tokens[last]!);
        depth.push(last < 0 ? 0 : depth[last]!);
        start.push(calls.start_C[c]!);
        firstKey.push(range.get(rollout)![0]);
        lastKey.push(range.get(rollout)![1]);
      }
    }
  }
  return {
    tokens_N: Int32Array.from(tokens),
    depth_N: Int32Array.from(depth),
    keys: K,
    visibility: {
      position_Q: Int32Array.from(position),
      end_K: Int32Array.from(end_K),
      start_Q: Int32Array.from(start),
      finish_K: Int32Array.from(finish_K),
      firstKey_Q: Int32Array.from(firstKey),
      lastKey_Q: Int32Array.from(lastKey),
    },
    reads_U: Int32Array.from(reads),
    source_M: Int32Array.from(source),
  };
}
