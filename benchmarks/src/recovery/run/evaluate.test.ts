import { fileURLToPath } from 'node:url';
import { randomStream } from '@treeward/base';
import type { TreeEdge } from '@treeward/tree-recovery';
import { expect, it } from 'vitest';
import { CLEAN, FAULTY } from '../faults/conditions.js';
import { scoreEdges, totalCounts } from '../score/edge-score.js';
import { loadBehaviours } from '../simulate/behaviour.js';
import { simulateRollout } from '../simulate/rollout.js';
import { evaluate } from './evaluate.js';
import { cleanRows, faultRows, meetsBar } from './rows.js';
import { addTally, newTally } from './tally.js';

const [behaviour] = loadBehaviours(fileURLToPath(new URL('../../../behaviours/tuning', import.meta.url)));

it('a perfect tree scores 1, the same edges with shuffled ends do not', async () => {
  const random = randomStream('shuffle');
  for (let i = 0; i < 5; i++) {
    const { truth } = await simulateRollout(behaviour!, `perfect/${i}`);
    const perfect = truth.edges.map((edge): TreeEdge => ({ ...edge, confidence: 1, evidence: [] }));
    const best = totalCounts(scoreEdges(truth, perfect).counts);
    expect([best.found, best.right]).toEqual([best.truth, best.predicted]);
    const ends = random.shuffle(perfect.map(({ to }) => to));
    const shuffled = perfect.map((edge, index) => ({ ...edge, to: ends[index]! }));
    const worse = totalCounts(scoreEdges(truth, shuffled).counts);
    expect(worse.right).toBeLessThan(0.5 * best.right);
  }
});

it('scores a rollout under every condition, and adds up', async () => {
  const tallies = [];
  for (const condition of [CLEAN, ...FAULTY]) {
    const one = newTally(condition.name);
    await evaluate(behaviour!, `evaluate/${condition.name}`, condition, one);
    const tally = newTally(condition.name);
    addTally(tally, one);
    addTally(tally, one);
    expect(tally.calls).toBe(2 * one.calls);
    expect(tally.ownership.tokens).toBe(2 * one.ownership.tokens);
    expect(totalCounts(tally.counts).truth).toBe(2 * totalCounts(one.counts).truth);
    expect(one.calls).toBeGreaterThan(5);
    tallies.push(tally);
  }
  const rows = [...cleanRows(tallies[0]!), ...faultRows(tallies.slice(1))];
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
  for (const { name, value, unit, n } of rows) {
    expect(Number.isFinite(value), name).toBe(true);
    expect(n, name).toBeGreaterThan(0);
    if (unit === 'share') expect(value, name).toBeLessThanOrEqual(1);
  }
  const names = rows.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['clean/role_accuracy', 'wrong_advantage/token_prefix', 'faults/edge_recall/all']),
  );
});

it('a bar holds on its own side', () => {
  const row = { name: 'x', value: 0.5, unit: '', n: 1 } as const;
  expect(meetsBar({ ...row, better: 'higher', bar: 0.5 })).toBe(true);
  expect(meetsBar({ ...row, better: 'higher', bar: 0.6 })).toBe(false);
  expect(meetsBar({ ...row, better: 'lower', bar: 0.4 })).toBe(false);
  expect(meetsBar({ ...row, better: 'lower' })).toBe(true);
});
