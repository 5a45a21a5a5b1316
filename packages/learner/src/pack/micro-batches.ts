import { cutForest } from '@treeward/native';
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
  { budget, together }: CutOptions,
): MicroBatch[] {
  const { position_T, tokens_F, parent_F, end_F, depth_F } = forest;
  const wanted_M = Int32Array.from(wanted).sort();
  const predictor_M = wanted_M.map((token) => parent_F[position_T[token]!]!);
  const group_M = together && wanted_M.map(together);
  const cut = cutForest(
    { parent_F, end_F, predictor_M, ...(group_M && { group_M }) },
    { tokenBudget: budget },
  );
  return Array.from({ length: cut.scoredOffset_U1.length - 1 }, (_, u) => {
    const scored = range(cut.scoredOffset_U1, u);
    const tokens = range(cut.tokenOffset_U1, u);
    const forest_N = cut.forest_N.subarray(...tokens);
    const source_M = cut.order_M.subarray(...scored).map((m) => wanted_M[m]!);
    return {
      tokens_N: forest_N.map((f) => tokens_F[f]!),
      depth_N: forest_N.map((f) => depth_F[f]!),
      end_N: cut.end_N.slice(...tokens),
      ...sharedReads(cut.predictor_M.subarray(...scored), source_M, batch.temperature_T),
      targets_M: source_M.map((token) => batch.tokens_T[token]!),
      source_M,
    };
  });
}

const range = (offset_U1: Int32Array, u: number): [number, number] => [offset_U1[u]!, offset_U1[u + 1]!];

/** Scored tokens that are drawn from one distribution (a state at a temperature) read it once. */
function sharedReads(
  predictor_M: Int32Array,
  source_M: Int32Array,
  temperature_T: Float32Array,
): Pick<MicroBatch, 'predictor_U' | 'temperature_U' | 'read_M'> {
  const reads = new Map<string, number>();
  const predictor_U: number[] = [];
  const temperature_U: number[] = [];
  const read_M = predictor_M.map((at, m) => {
    const temperature = temperature_T[source_M[m]!]!;
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
    predictor_U: Int32Array.from(predictor_U),
    temperature_U: Float32Array.from(temperature_U),
    read_M,
  };
}
