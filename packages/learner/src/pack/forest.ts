import { TreewardError } from '@treeward/base';
import type { PackedTrees } from '../types.js';

/**
 * Every distinct token of a batch once: two packed tokens with equal tokens all the way from their roots have equal states,
 * whichever rows, branches or rollouts they belong to, so they are one token here. Depth-first, parents first: a token's
 * subtree is the stretch up to `end_F`.
 *
 * Legend: F distinct tokens, T packed tokens.
 */
export interface Forest {
  /** Where each packed token is found. */
  position_T: Int32Array;
  tokens_F: Int32Array;
  /** −1 at a root. */
  parent_F: Int32Array;
  end_F: Int32Array;
  /** Tokens before it on its path: its rotary position. */
  depth_F: Int32Array;
}

/** Larger than any vocabulary; parent × this + token stays an exact integer. */
const MAX_VOCABULARY = 2 ** 20;

type Rows = Pick<PackedTrees, 'rowStart_B1' | 'tokens_T' | 'parent_B'>;

/** @throws TreewardError LEARNER_E_BATCH when a row continues one that is not before it, or an id is out of range */
export function buildForest(batch: Rows): Forest {
  const { rowStart_B1, tokens_T, parent_B } = batch;
  const T = tokens_T.length;
  const made_T = new Int32Array(T);
  const known = new Map<number, number>();
  const tokens: number[] = [];
  const parents: number[] = [];
  const lastOfRow: number[] = [];
  for (let row = 0; row + 1 < rowStart_B1.length; row++) {
    const above = parent_B?.[row] ?? -1;
    if (above >= row) {
      throw new TreewardError('LEARNER_E_BATCH', `row ${row} continues row ${above}, which is not before it`);
    }
    let at = above < 0 ? -1 : lastOfRow[above]!;
    for (let t = rowStart_B1[row]!; t < rowStart_B1[row + 1]!; t++) {
      const token = tokens_T[t]!;
      if (token < 0 || token >= MAX_VOCABULARY) {
        throw new TreewardError('LEARNER_E_BATCH', `token ${t} of the batch is ${token}, which is no id`);
      }
      const key = (at + 1) * MAX_VOCABULARY + token;
      let next = known.get(key);
      if (next === undefined) {
        next = tokens.length;
        known.set(key, next);
        tokens.push(token);
        parents.push(at);
      }
      made_T[t] = at = next;
    }
    lastOfRow.push(at);
  }
  return depthFirst(tokens, parents, made_T);
}

/** Renumbers from order of appearance to depth-first, children in order of appearance. */
function depthFirst(tokens: readonly number[], parents: readonly number[], made_T: Int32Array): Forest {
  const F = tokens.length;
  const size = new Int32Array(F).fill(1);
  for (let f = F - 1; f >= 0; f--) if (parents[f]! >= 0) size[parents[f]!]! += size[f]!;
  const place = new Int32Array(F);
  /** Where the next child of a token goes. */
  const free = new Int32Array(F);
  let root = 0;
  for (let f = 0; f < F; f++) {
    const parent = parents[f]!;
    if (parent < 0) {
      place[f] = root;
      root += size[f]!;
    } else {
      place[f] = free[parent]!;
      free[parent]! += size[f]!;
    }
    free[f] = place[f]! + 1;
  }
  const tokens_F = new Int32Array(F);
  const parent_F = new Int32Array(F);
  const end_F = new Int32Array(F);
  const depth_F = new Int32Array(F);
  for (let f = 0; f < F; f++) {
    const to = place[f]!;
    const parent = parents[f]!;
    tokens_F[to] = tokens[f]!;
    parent_F[to] = parent < 0 ? -1 : place[parent]!;
    end_F[to] = to + size[f]!;
  }
  for (let f = 0; f < F; f++) depth_F[f] = parent_F[f]! < 0 ? 0 : depth_F[parent_F[f]!]! + 1;
  return { position_T: made_T.map((f) => place[f]!), tokens_F, parent_F, end_F, depth_F };
}
