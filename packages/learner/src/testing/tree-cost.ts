import type { ModelConfig, PackedTrees } from '../index.js';

/** What a batch asks of a model: forward and backward operations. */
interface TreeCost {
  distinct: number;
  pairs: number;
  reads: number;
  flops: number;
}

/**
 * The least that training a batch's trees takes: linears once per distinct token, attention once per visible pair, the
 * vocabulary once per distribution that is scored. Backward is twice the forward for products with weights and 2.5 times for
 * attention, which forms its scores again.
 */
export function treeCost(
  config: ModelConfig,
  batch: PackedTrees,
  scored: (token: number) => boolean,
): TreeCost {
  const { hiddenSize: d, heads, kvHeads, headDim, ffnSize, layers, vocabSize } = config;
  const known = new Map<string, { id: number; depth: number }>();
  const last: { id: number; depth: number }[] = [];
  const fed = new Set<number>();
  const reads = new Set<number>();
  const parents: number[] = [];
  const depths: number[] = [];
  for (let row = 0; row + 1 < batch.rowStart_B1.length; row++) {
    const above = batch.parent_B?.[row] ?? -1;
    let at = above < 0 ? { id: -1, depth: 0 } : last[above]!;
    for (let t = batch.rowStart_B1[row]!; t < batch.rowStart_B1[row + 1]!; t++) {
      if (at.id >= 0 && scored(t)) {
        reads.add(at.id);
        for (let id = at.id; id >= 0 && !fed.has(id); id = parents[id]!) fed.add(id);
      }
      const key = `${at.id} ${batch.tokens_T[t]}`;
      let next = known.get(key);
      if (!next) {
        next = { id: known.size, depth: at.depth + 1 };
        known.set(key, next);
        parents.push(at.id);
        depths.push(next.depth);
      }
      at = next;
    }
    last.push(at);
  }
  const pairs = [...fed].reduce((sum, id) => sum + depths[id]!, 0);
  const linear = layers * d * (2 * heads * headDim + 2 * kvHeads * headDim + 3 * ffnSize);
  const flops =
    6 * linear * fed.size + 3.5 * 4 * layers * heads * headDim * pairs + 6 * vocabSize * d * reads.size;
  return { distinct: fed.size, pairs, reads: reads.size, flops };
}
