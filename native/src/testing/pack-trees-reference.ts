import type { CutForestInput, CutForestOptions, PackTreesInput } from '../pack-trees.js';

/**
 * Plain version of `packTrees`: tokens are equal when their whole paths are, as text. Returns each given token's path and the
 * distinct paths in depth-first order, children in order of appearance.
 */
export function packTreesReference({ tokens_T, start_B, end_B, parent_B }: PackTreesInput): {
  path_T: (string | null)[];
  paths_F: string[];
} {
  const path_T = Array.from(tokens_T, (): string | null => null);
  const children = new Map<string, string[]>();
  const known = new Set<string>();
  const last_B: string[] = [];
  for (let b = 0; b < parent_B.length; b++) {
    let path = parent_B[b]! < 0 ? '' : last_B[parent_B[b]!]!;
    for (let t = start_B[b]!; t < end_B[b]!; t++) {
      const next = `${path}/${tokens_T[t]}`;
      if (!known.has(next)) {
        known.add(next);
        children.set(path, [...(children.get(path) ?? []), next]);
      }
      path_T[t] = path = next;
    }
    last_B.push(path);
  }
  const paths_F: string[] = [];
  const stack = [...(children.get('') ?? [])].reverse();
  for (let path = stack.pop(); path !== undefined; path = stack.pop()) {
    paths_F.push(path);
    stack.push(...[...(children.get(path) ?? [])].reverse());
  }
  return { path_T, paths_F };
}

/** Ancestors of a token of the forest and itself, from the root. */
export function ancestors(parent_F: ArrayLike<number>, token: number): number[] {
  const out: number[] = [];
  for (let f = token; f >= 0; f = parent_F[f]!) out.push(f);
  return out.reverse();
}

/** Plain version of `cutForest` as sets: each micro-batch's scored tokens and tokens of the forest. */
export function cutForestReference(
  { parent_F, end_F, predictor_M, group_M }: CutForestInput,
  { tokenBudget, oversize = 'widen' }: CutForestOptions,
): { scored: number[]; tokens: number[] }[] {
  const order = [...predictor_M.keys()].sort((a, b) => predictor_M[a]! - predictor_M[b]! || a - b);
  const pieces: number[][] = [];
  if (group_M) {
    const groups = new Map<number, number[]>();
    for (const m of order) groups.set(group_M[m]!, [...(groups.get(group_M[m]!) ?? []), m]);
    pieces.push(...groups.values());
  } else {
    order.forEach((m, i) => {
      const before = i === 0 ? -1 : predictor_M[order[i - 1]!]!;
      if (before >= 0 && predictor_M[m]! < end_F[before]!) pieces.at(-1)!.push(m);
      else pieces.push([m]);
    });
  }
  const needs = (scored: readonly number[]): Set<number> =>
    new Set(scored.flatMap((m) => ancestors(parent_F, predictor_M[m]!)));
  const longest = Math.max(0, ...order.map((m) => ancestors(parent_F, predictor_M[m]!).length));
  const budget = oversize === 'widen' ? Math.max(tokenBudget, longest) : tokenBudget;
  const batches: number[][] = [];
  let batch: number[] = [];
  for (const piece of pieces) {
    if (batch.length && needs([...batch, ...piece]).size > budget) {
      batches.push(batch);
      batch = [];
    }
    batch = [...batch, ...piece];
  }
  if (batch.length) batches.push(batch);
  return batches.map((scored) => ({ scored, tokens: [...needs(scored)].sort((a, b) => a - b) }));
}
