import type { MicroBatch } from './model/decoder.js';
import type { PackedTrees } from './types.js';

/**
 * Cuts rows into right-padded micro-batches of similar length, at most `tokenBudget` padded tokens each (a longer row
 * stands alone). A row's last token is a target only, so it is not fed.
 *
 * @param wanted 1 for each token (packed axis) whose log-probability is needed
 */
export function microBatches(
  batch: PackedTrees,
  rows: readonly number[],
  wanted: (token: number) => boolean,
  tokenBudget: number,
): MicroBatch[] {
  const length = (row: number): number => batch.rowStart_B1[row + 1]! - batch.rowStart_B1[row]! - 1;
  const usable = rows.filter((row) => length(row) > 0);
  usable.sort((a, b) => length(a) - length(b) || a - b);
  const out: MicroBatch[] = [];
  let group: number[] = [];
  const flush = (): void => {
    if (group.length) out.push(pad(batch, group, wanted));
    group = [];
  };
  for (const row of usable) {
    if (group.length && length(row) * (group.length + 1) > tokenBudget) flush();
    group.push(row);
  }
  flush();
  return out.filter((micro) => micro.positions_M.length > 0);
}

function pad(batch: PackedTrees, rows: readonly number[], wanted: (token: number) => boolean): MicroBatch {
  const B = rows.length;
  const T = Math.max(...rows.map((row) => batch.rowStart_B1[row + 1]! - batch.rowStart_B1[row]! - 1));
  const tokens = new Int32Array(B * T);
  const positions: number[] = [];
  const targets: number[] = [];
  const source: number[] = [];
  rows.forEach((row, b) => {
    const start = batch.rowStart_B1[row]!;
    const end = batch.rowStart_B1[row + 1]!;
    for (let i = start; i < end - 1; i++) {
      tokens[b * T + i - start] = batch.tokens_T[i]!;
      if (!wanted(i + 1)) continue;
      positions.push(b * T + i - start);
      targets.push(batch.tokens_T[i + 1]!);
      source.push(i + 1);
    }
  });
  return {
    B,
    T,
    tokens,
    positions_M: Int32Array.from(positions),
    targets_M: Int32Array.from(targets),
    source_M: Int32Array.from(source),
  };
}
