import { TreewardError } from '@treeward/base';
import { packTrees, type PackedForest } from '@treeward/native';
import type { PackedTrees } from '../types.js';

/**
 * Every distinct token of a batch once: two packed tokens with equal tokens all the way from their roots have equal states,
 * whichever rows, branches or rollouts they belong to, so they are one token here. Depth-first, parents first: a token's
 * subtree is the stretch up to `end_F`.
 *
 * Legend: F distinct tokens, T packed tokens.
 */
export type Forest = Pick<PackedForest, 'position_T' | 'tokens_F' | 'parent_F' | 'end_F' | 'depth_F'>;

type Rows = Pick<PackedTrees, 'rowStart_B1' | 'tokens_T' | 'parent_B'>;

/** @throws TreewardError LEARNER_E_BATCH when a row continues one that is not before it, or a token is no id */
export function buildForest({ rowStart_B1, tokens_T, parent_B }: Rows): Forest {
  const rows = rowStart_B1.length - 1;
  try {
    return packTrees({
      tokens_T,
      start_B: rowStart_B1.subarray(0, rows),
      end_B: rowStart_B1.subarray(1),
      parent_B: parent_B ?? new Int32Array(rows).fill(-1),
    });
  } catch (cause) {
    throw new TreewardError('LEARNER_E_BATCH', `the batch cannot be packed: ${(cause as Error).message}`, {
      cause,
    });
  }
}
