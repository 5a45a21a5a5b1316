import type { EdgeType, TreeEdge } from '@treeward/tree-recovery';
import { describe, expect, it } from 'vitest';
import type { Truth } from '../simulate/truth.js';
import { scoreEdges, totalCounts } from './edge-score.js';

const truthOf = (...edges: [number, number, EdgeType][]): Truth => ({
  calls: [],
  edges: edges.map(([from, to, type]) => ({ from, to, type })),
});
const given = (...edges: [number, number, EdgeType, number?][]): TreeEdge[] =>
  edges.map(([from, to, type, confidence]) => ({
    from,
    to,
    type,
    confidence: confidence ?? 1,
    evidence: ['b', 'a'],
  }));

const truth = truthOf(
  [0, 1, 'continue'],
  [1, 2, 'retry'],
  [2, 3, 'continue'],
  [3, 4, 'rollback'],
  [5, 6, 'ambiguous'],
);

describe('scoreEdges', () => {
  it('gives a perfect tree 1 everywhere', () => {
    const { counts, missed, wrong } = scoreEdges(
      truth,
      given(...truth.edges.map(({ from, to, type }) => [from, to, type] as [number, number, EdgeType])),
    );
    expect(totalCounts(counts)).toEqual({ truth: 4, found: 4, abstained: 0, predicted: 4, right: 4 });
    expect(counts.ambiguous).toEqual({ truth: 1, found: 1, abstained: 0, predicted: 1, right: 1 });
    expect([missed, wrong]).toEqual([[], []]);
  });

  it('counts a wrong type, a wrong end and a missing edge', () => {
    const { counts } = scoreEdges(truth, given([0, 1, 'retry'], [1, 2, 'retry'], [1, 3, 'continue']));
    expect(counts.continue).toEqual({ truth: 2, found: 0, abstained: 0, predicted: 1, right: 0 });
    expect(counts.retry).toEqual({ truth: 1, found: 1, abstained: 0, predicted: 2, right: 1 });
    expect(counts.rollback).toEqual({ truth: 1, found: 0, abstained: 0, predicted: 0, right: 0 });
  });

  it('takes `ambiguous` for an abstention where the truth is known, and a guess for wrong where it is not', () => {
    const { counts } = scoreEdges(truth, given([3, 4, 'ambiguous'], [5, 6, 'retry']));
    expect(counts.rollback).toMatchObject({ truth: 1, found: 0, abstained: 1 });
    expect(counts.ambiguous).toMatchObject({ truth: 1, found: 0, predicted: 1, right: 0 });
    expect(counts.retry).toMatchObject({ predicted: 1, right: 0 });
  });

  it('asks for no edge of a lost call, and lets stand what holds without it', () => {
    const retries = truthOf([0, 1, 'retry'], [1, 2, 'retry'], [2, 3, 'continue']);
    const { counts, wrong } = scoreEdges(retries, given([0, 2, 'retry'], [2, 3, 'continue']), new Set([1]));
    expect(counts.retry).toBeUndefined();
    expect(counts.continue).toMatchObject({ truth: 1, found: 1, predicted: 1 });
    expect(wrong).toEqual([]);
    expect(scoreEdges(retries, given([0, 3, 'continue']), new Set([1])).wrong).toHaveLength(1);
  });

  it('keeps what calibration needs', () => {
    const { judged } = scoreEdges(truth, given([0, 1, 'continue', 0.9], [9, 1, 'spawn', 0.2]));
    expect(judged).toEqual([
      { type: 'continue', evidence: 'a+b', confidence: 0.9, right: true },
      { type: 'spawn', evidence: 'a+b', confidence: 0.2, right: false },
    ]);
  });
});
