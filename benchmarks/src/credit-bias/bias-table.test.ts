import { describe, expect, it } from 'vitest';
import { biasTable, LAMBDAS, type BiasRow } from './bias-table.js';

const rows = biasTable();

function row(toy: string, option: string, lambda?: number): BiasRow {
  const found = rows.find((r) => r.toy === toy && r.option === option && r.lambda === lambda);
  if (!found) throw new Error(`no row ${toy} / ${option} / ${lambda}`);
  return found;
}
const bias = (toy: string, option: string): number[] =>
  LAMBDAS.map((lambda) => row(toy, option, lambda).bias);
const variance = (toy: string, option: string): number[] =>
  LAMBDAS.map((lambda) => row(toy, option, lambda).variance);
const near = (expected: readonly number[]): unknown[] => expected.map((value) => expect.closeTo(value, 3));
const NONE = near([0, 0, 0, 0]);

// Figures: design/credit.md §3 and §5, and datasets/golden/tree_toy_bias.json, made in Python from the same toys.

describe('without a critic', () => {
  it.each([
    ['once only, R', 0, 0.781],
    ['once only, R − E[R]', 0, 0.359],
    ['linearised paths, summed', 2.648, 1.736],
    ['linearised paths, averaged', 0.464, 0.505],
    ['failed attempts dropped', 0.29, 0.7],
    ["loss divided by the rollout's own tokens", 0.74, 0.107],
    ['leaf rewards backed up, mean', 1.181, 0.407],
    ['leaf rewards backed up, sum', 0.585, 0.591],
    ['leaf rewards backed up, max', 0.585, 0.586],
  ])('toy A: %s has bias %f and variance %f', (option, expectedBias, expectedVariance) => {
    expect(row('A', option).bias).toBeCloseTo(expectedBias, 2);
    expect(row('A', option).variance).toBeCloseTo(expectedVariance, 2);
  });

  it('lost replies: keeping them is unbiased; dropping them costs 0.38, with a baseline 0.75', () => {
    expect(row('lost replies', 'once only, R').bias).toBeLessThan(1e-6);
    expect(row('lost replies', 'undelivered replies dropped, R').bias).toBeCloseTo(0.38, 2);
    expect(row('lost replies', 'undelivered replies dropped, R − E[R]').bias).toBeCloseTo(0.75, 2);
  });

  it('each token once with the outcome is unbiased on every toy', () => {
    for (const { option, bias: found } of rows.filter(
      ({ toy }) => !toy.startsWith('B') && !toy.includes(','),
    )) {
      if (option === 'once only, R') expect(found).toBeLessThan(1e-6);
    }
  });
});

describe('with a critic', () => {
  it('toy A: the history critic is unbiased at every lambda, the context critic only at 1', () => {
    expect(bias('A', 'chain, V(history)')).toEqual(NONE);
    expect(bias('A', 'lineage, V(history)')).toEqual(NONE);
    expect(variance('A', 'chain, V(history)')).toEqual(near([0.111, 0.14, 0.287, 0.321]));
    expect(bias('A', 'chain, V(context)')).toEqual(near([0.429, 0.087, 0.007, 0]));
    expect(row('A', 'prefix tree, V(history), mean of children', 0).bias).toBeCloseTo(0.124, 3);
    expect(row('A', 'prefix tree, V(history), max of children', 0).bias).toBeCloseTo(0.316, 3);
  });

  it('toy C: along lineage even the context critic is unbiased', () => {
    expect(variance('C', 'chain, V(started)')).toEqual(near([0.047, 0.059, 0.115, 0.126]));
    expect(bias('C', 'chain, V(context)')).toEqual(near([0.112, 0.056, 0.006, 0]));
    expect(bias('C', 'lineage, V(context)')).toEqual(NONE);
    expect(variance('C', 'lineage, V(context)')).toEqual(near([0.09, 0.099, 0.125, 0.129]));
  });

  it.each(['A', 'C', 'interleaved finishes', 'cut call', 'lost replies', 'late successor'])(
    '%s: what had finished, along lineage, is unbiased at every lambda',
    (toy) => {
      expect(bias(toy, 'lineage, V(history)')).toEqual(NONE);
    },
  );

  it('where calls overlap, the chain is biased with what had finished', () => {
    for (const toy of ['interleaved finishes', 'cut call']) {
      const [at0, , , at1] = bias(toy, 'chain, V(history)');
      expect(at0).toBeGreaterThan(0.05);
      expect(at1).toBeLessThan(1e-6);
    }
  });

  it('what has only started is no baseline once a call can be cut: biased even at lambda 1', () => {
    expect(bias('interleaved finishes', 'chain, V(started)')).toEqual(NONE);
    expect(row('cut call', 'chain, V(started)', 1).bias).toBeGreaterThan(0.02);
    expect(row('cut call', 'lineage, V(started)', 1).bias).toBeGreaterThan(0.02);
  });
});

describe('forks, groups and stale samples', () => {
  it('toy B: only a reach weight with a mean backup estimates the chain, only a sum estimates the sum', () => {
    expect(row('B against E chain', 'reach weight, mean backup').bias).toBeLessThan(1e-6);
    expect(row('B against E chain', 'leaf share, leaf mean (= linearised, 1/L)').bias).toBeCloseTo(0.32, 2);
    expect(row('B against E chain', 'linearised, summed (= sum backup)').bias).toBeCloseTo(5.5, 1);
    expect(row('B against E sum', 'linearised, summed (= sum backup)').bias).toBeLessThan(1e-6);
    expect(row('B against E max', 'once only, largest leaf reward of the rollout').bias).toBeLessThan(1e-6);
    expect(row('B against E max', 'reach weight, max backup').bias).toBeCloseTo(0.63, 2);
  });

  it('rloo with a constant normaliser is unbiased, what recipes add to it is not', () => {
    const group = 'A, groups of 3';
    expect(row(group, 'rloo, constant normaliser').bias).toBeLessThan(1e-6);
    expect(row(group, 'group mean without std (× n/(n−1) is rloo)').bias).toBeCloseTo(1 / 3, 3);
    expect(row(group, 'grpo: divided by the group std').bias).toBeGreaterThan(0.05);
    expect(row(group, "rloo, divided by the batch's tokens").bias).toBeGreaterThan(0.01);
    expect(row(group, "rloo, divided by each rollout's own tokens").bias).toBeGreaterThan(0.05);
    expect(row(group, 'preset treeward').bias).toBeLessThan(1e-6);
    expect(row(group, 'preset clawgym2').bias).toBeGreaterThan(0.1);
  });

  it("the whole rollout's importance weight is unbiased, everything cheaper is not", () => {
    const stale = 'A, sampler off by 0.5 logits';
    const weight = (kind: string): number => row(stale, `importance weight: ${kind}`).bias;
    expect(weight('rollout, not truncated')).toBeLessThan(1e-6);
    expect(weight('token, truncated at 2')).toBeGreaterThan(0.01);
    expect(weight('none')).toBeGreaterThan(weight('token, not truncated'));
  });
});
