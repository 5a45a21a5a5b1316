import { randomStream } from '@treeward/base';
import { describe, expect, test } from 'vitest';
import { FAMILY_NAMES, makeTask } from '../make-task.js';
import { renameSlots, renameTask } from '../rename-slots.js';
import { seedOf } from '../splits.js';
import { gradePlans } from '../testing/grade.js';
import { DOMAINS, type Step } from '../types.js';

// A family's code is the same for every seed: CI plays a few, the full run (half a minute more) the twenty.
const SEEDS = process.env.TREEWARD_TEST_FULL === '1' ? 20 : 5;

/** What the dominant flaw of a family earns; `order` depends on how many lines already stand in their place. */
const DOMINANT: Record<string, number[]> = {
  actions: [0.4],
  reply: [0.35],
  config: [0.6],
  runsave: [0.15],
  lookup: [0.4],
  max: [0.1],
  fill: [0.3],
  card: [0.5],
  order: [0.4, 0.55, 0.6, 0.7],
  kb: [0.1],
  bug: [0.5],
  bump: [0.5],
};

test('two families for each of the six domains', () => {
  const count = new Map<string, number>();
  for (const family of FAMILY_NAMES) {
    const { domain } = makeTask(family, 1);
    count.set(domain, (count.get(domain) ?? 0) + 1);
  }
  expect(count).toEqual(new Map(Object.keys(DOMAINS).map((domain) => [domain, 2])));
});

describe.each(FAMILY_NAMES)('%s', (family) => {
  const task = (n: number) => makeTask(family, seedOf('train', n));

  test(`untouched 0, oracle 1, dominant flaw its own score: ${SEEDS} seeds, steps and checker really run`, async () => {
    for (let n = 0; n < SEEDS; n++) {
      const made = task(n);
      const [untouched, oracle, dominant] = await gradePlans(made, [[], made.oracle, made.flaws[0]!]);
      expect(untouched, made.id).toEqual({ reward: 0, scores: expect.anything() as unknown });
      expect(Object.values(untouched!.scores).every((score) => score === 0)).toBe(true);
      expect(oracle, made.id).toEqual({ reward: 1, scores: expect.anything() as unknown });
      expect(Object.values(oracle!.scores).every((score) => score === 1)).toBe(true);
      expect(DOMINANT[family], made.id).toContain(dominant!.reward);
    }
  });

  test('every other flaw earns less than 1; renamed consistently, it is still a task with the same scores', async () => {
    for (let n = 0; n < SEEDS / 5; n++) {
      const made = task(n);
      const renamed = renameTask(made, renameSlots(made, randomStream(n, 'rename')));
      expect(renamed.query).not.toBe(made.query);
      const [grade, again] = await Promise.all(
        [made, renamed].map((each) => gradePlans(each, [[], each.oracle, ...each.flaws])),
      );
      for (const { reward } of grade!.slice(2)) expect(reward, made.id).toBeLessThan(1);
      expect(again, made.id).toEqual(grade);
    }
  });

  test('weights sum to 1; same seed, same task; other seed, other task', () => {
    for (let n = 0; n < 200; n++) {
      const made = task(n);
      expect(made.rules.reduce((sum, { weight }) => sum + weight, 0)).toBeCloseTo(1, 12);
      expect(new Set(made.rules.map(({ name }) => name)).size).toBe(made.rules.length);
    }
    expect(task(7)).toEqual(task(7));
    const distinct = new Set(
      Array.from({ length: 200 }, (_, n) => JSON.stringify(task(n).files) + task(n).query),
    );
    expect(distinct.size).toBe(200);
  });

  test('short enough for a context of 512 tokens: at most 600 characters in all', () => {
    const size = (step: Step): number => JSON.stringify(step).length;
    for (let n = 0; n < 200; n++) {
      const made = task(n);
      const total =
        made.query.length +
        Object.values(made.files).join('').length +
        made.oracle.reduce((sum, step) => sum + size(step), 0);
      expect(total, made.id).toBeLessThan(600);
    }
  });
});
