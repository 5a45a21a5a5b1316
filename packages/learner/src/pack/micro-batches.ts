import type { PackedTrees } from '../types.js';
import type { Forest } from './forest.js';

/**
 * Part of a forest that is computed in one go, with the tokens that are scored in it.
 *
 * Legend: N its tokens, M scored tokens, U distinct reads (a state and a temperature): draws of one distribution share it.
 */
export interface MicroBatch {
  tokens_N: Int32Array;
  depth_N: Int32Array;
  end_N: Int32Array;
  /** The state that each read projects. */
  predictor_U: Int32Array;
  temperature_U: Float32Array;
  /** The read that predicts each scored token. */
  read_M: Int32Array;
  targets_M: Int32Array;
  /** Where each scored token stands in the packed batch's T axis. */
  source_M: Int32Array;
}

export interface CutOptions {
  /** Distinct tokens per micro-batch. A path longer than this stands alone: nothing is cut off. */
  budget: number;
  /** Keep what has the same number together (a sequence whose tokens share one ratio). @default paths */
  together?: (token: number) => number;
}

/**
 * Cuts a forest into micro-batches that hold every wanted token once. The pieces are whole paths in depth-first order:
 * cutting inside a path would compute its beginning again. Since the longest path needs its memory anyway, others may be as
 * large.
 *
 * @param wanted packed tokens to score; the first of a context has no prediction and must not be among them
 */
export function microBatches(
  batch: PackedTrees,
  forest: Forest,
  wanted: Iterable<number>,
  options: CutOptions,
): MicroBatch[] {
  const predictor = (token: number): number => forest.parent_F[forest.position_T[token]!]!;
  const tokens = [...wanted].sort((a, b) => predictor(a) - predictor(b) || a - b);
  const pieces = options.together ? grouped(tokens, options.together) : paths(tokens, predictor, forest);
  const longest = tokens.reduce((max, token) => Math.max(max, forest.depth_F[predictor(token)]! + 1), 0);
  const budget = Math.max(options.budget, longest);
  const out: MicroBatch[] = [];
  /** The micro-batch that last took each token of the forest, from 1. */
  const taken = new Int32Array(forest.tokens_F.length);
  let members: number[] = [];
  let size = 0;
  const flush = (): void => {
    if (members.length) out.push(cut(batch, forest, members));
    members = [];
    size = 0;
  };
  /** Distinct tokens that a piece adds; marks them. */
  const take = (piece: readonly number[], mark: number): number => {
    let added = 0;
    for (const token of piece) {
      for (let f = predictor(token); f >= 0 && taken[f] !== mark; f = forest.parent_F[f]!) {
        taken[f] = mark;
        added++;
      }
    }
    return added;
  };
  for (const piece of pieces) {
    const added = take(piece, out.length + 1);
    if (members.length && size + added > budget) {
      flush();
      size = take(piece, out.length + 1);
    } else size += added;
    members.push(...piece);
  }
  flush();
  return out;
}

/** Runs of tokens whose predictors follow each other down one path. */
function paths(
  tokens: readonly number[],
  predictor: (token: number) => number,
  forest: Forest,
): readonly number[][] {
  const out: number[][] = [];
  let last = -1;
  for (const token of tokens) {
    const at = predictor(token);
    if (last >= 0 && at < forest.end_F[last]!) out.at(-1)!.push(token);
    else out.push([token]);
    last = at;
  }
  return out;
}

function grouped(tokens: readonly number[], key: (token: number) => number): readonly number[][] {
  const groups = new Map<number, number[]>();
  for (const token of tokens) {
    const group = groups.get(key(token));
    if (group) group.push(token);
    else groups.set(key(token), [token]);
  }
  return [...groups.values()];
}

function cut(batch: PackedTrees, forest: Forest, members: readonly number[]): MicroBatch {
  const { position_T, tokens_F, parent_F, end_F, depth_F } = forest;
  const needed = new Set<number>();
  for (const token of members) {
    for (let f = parent_F[position_T[token]!]!; f >= 0 && !needed.has(f); f = parent_F[f]!) needed.add(f);
  }
  const kept = Int32Array.from(needed).sort();
  const local = new Map<number, number>();
  kept.forEach((f, n) => local.set(f, n));
  /** How many kept tokens stand before place f. */
  const before = (f: number): number => {
    let [low, high] = [0, kept.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (kept[middle]! < f) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const reads = new Map<string, number>();
  const predictor_U: number[] = [];
  const temperature_U: number[] = [];
  const read_M = Int32Array.from(members, (token) => {
    const at = local.get(parent_F[position_T[token]!]!)!;
    const temperature = batch.temperature_T[token]!;
    const key = `${at} ${temperature}`;
    let read = reads.get(key);
    if (read === undefined) {
      read = predictor_U.length;
      reads.set(key, read);
      predictor_U.push(at);
      temperature_U.push(temperature);
    }
    return read;
  });
  return {
    tokens_N: kept.map((f) => tokens_F[f]!),
    depth_N: kept.map((f) => depth_F[f]!),
    end_N: kept.map((f) => before(end_F[f]!)),
    predictor_U: Int32Array.from(predictor_U),
    temperature_U: Float32Array.from(temperature_U),
    read_M,
    targets_M: Int32Array.from(members, (token) => batch.tokens_T[token]!),
    source_M: Int32Array.from(members),
  };
}
