import { evidencePattern, type EdgeType, type TreeEdge } from '@treeward/tree-recovery';
import type { Truth, TrueEdge } from '../simulate/truth.js';

export const EDGE_TYPES: readonly EdgeType[] = [
  'continue',
  'retry',
  'rollback',
  'parallel',
  'compaction',
  'rewrite',
  'spawn',
  'return',
];

export interface EdgeCounts {
  /** True edges whose ends survive. */
  truth: number;
  /** Of those, found with the right type. */
  found: number;
  /** Of those, answered `ambiguous`. */
  abstained: number;
  predicted: number;
  right: number;
}

/** One predicted edge, for calibration. */
export interface Judged {
  type: EdgeType;
  /** Key of its evidence in the table of confidences. */
  evidence: string;
  confidence: number;
  right: boolean;
  /** Name of the behaviour that the rollout was drawn from. */
  behaviour: string;
}

export interface EdgeScore {
  counts: Partial<Record<EdgeType, EdgeCounts>>;
  judged: Omit<Judged, 'behaviour'>[];
  /** For people who look for the cause: what was missed and what was wrong. */
  missed: TrueEdge[];
  wrong: TreeEdge[];
}

const keyOf = ({ from, to, type }: TrueEdge): string => `${from}>${to}:${type}`;

/**
 * Holds predicted edges against the truth. An edge is right when both ends and the type are. `lost` calls are not in the
 * record: their edges are not asked for, and what remains when a lost call is left out (the next attempt after a lost one)
 * counts neither for nor against.
 */
export function scoreEdges(
  truth: Truth,
  predicted: readonly TreeEdge[],
  lost: ReadonlySet<number> = new Set(),
): EdgeScore {
  const score: EdgeScore = { counts: {}, judged: [], missed: [], wrong: [] };
  const counts = (type: EdgeType): EdgeCounts =>
    (score.counts[type] ??= { truth: 0, found: 0, abstained: 0, predicted: 0, right: 0 });
  const real = new Set(truth.edges.map(keyOf));
  const spanning = new Set(acrossLost(truth.edges, lost).map(keyOf));
  const given = new Set(predicted.map(keyOf));
  const abstainedInto = new Set(predicted.filter(({ type }) => type === 'ambiguous').map(({ to }) => to));

  for (const edge of truth.edges) {
    if (lost.has(edge.from) || lost.has(edge.to)) continue;
    const count = counts(edge.type);
    count.truth++;
    if (given.has(keyOf(edge))) count.found++;
    else {
      score.missed.push(edge);
      if (abstainedInto.has(edge.to)) count.abstained++;
    }
  }
  for (const edge of predicted) {
    const right = real.has(keyOf(edge));
    if (!right && spanning.has(keyOf(edge))) continue;
    const count = counts(edge.type);
    count.predicted++;
    if (right) count.right++;
    else score.wrong.push(edge);
    score.judged.push({
      type: edge.type,
      evidence: evidencePattern(edge.evidence),
      confidence: edge.confidence,
      right,
    });
  }
  return score;
}

/** Edges between survivors that hold once the lost calls between them are left out. */
export function acrossLost(edges: readonly TrueEdge[], lost: ReadonlySet<number>): TrueEdge[] {
  let all = [...edges];
  const made: TrueEdge[] = [];
  for (const call of lost) {
    const into = all.filter(({ to }) => to === call);
    const out = all.filter(({ from }) => from === call);
    const joined = into.flatMap((a) =>
      out.flatMap((b): TrueEdge[] => {
        const type = spanningType(a.type, b.type);
        return type ? [{ from: a.from, to: b.to, type }] : [];
      }),
    );
    // Siblings of a lost first one: which of them stands at the centre is no longer given.
    const siblings = out.filter(({ type }) => type === 'parallel').map(({ to }) => to);
    for (const a of siblings)
      for (const b of siblings) if (a !== b) joined.push({ from: a, to: b, type: 'parallel' });
    all = [...all.filter(({ from, to }) => from !== call && to !== call), ...joined];
    made.push(...joined);
  }
  return made;
}

function spanningType(first: EdgeType, second: EdgeType): EdgeType | null {
  if (second === 'retry') return first; // the attempt behind a lost one takes its place
  const goesOn = first === 'continue' || first === 'retry';
  if (goesOn && (second === 'rollback' || second === 'rewrite' || second === 'parallel')) return second;
  return goesOn && second === 'compaction' ? second : null;
}

export function addCounts(into: EdgeScore['counts'], from: EdgeScore['counts']): void {
  for (const [type, counts] of Object.entries(from) as [EdgeType, EdgeCounts][]) {
    const sum = (into[type] ??= { truth: 0, found: 0, abstained: 0, predicted: 0, right: 0 });
    for (const name of Object.keys(counts) as (keyof EdgeCounts)[]) sum[name] += counts[name];
  }
}

/** All decidable types together. */
export function totalCounts(counts: EdgeScore['counts']): EdgeCounts {
  const sum = { truth: 0, found: 0, abstained: 0, predicted: 0, right: 0 };
  for (const type of EDGE_TYPES) {
    for (const name of Object.keys(sum) as (keyof EdgeCounts)[]) sum[name] += counts[type]?.[name] ?? 0;
  }
  return sum;
}
