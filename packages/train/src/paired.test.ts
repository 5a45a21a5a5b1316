import { describe, expect, it } from 'vitest';
import { randomStream } from '@treeward/base';
import { pairedDifference } from './paired.js';

describe('pairedDifference', () => {
  it('lets task difficulty cancel: a constant gain has no width', () => {
    const before = [0, 0.25, 0.5, 0.75];
    const result = pairedDifference(
      before,
      before.map((value) => value + 0.25),
      1,
    );
    expect(result).toMatchObject({
      n: 4,
      before: 0.375,
      after: 0.625,
      difference: 0.25,
      low: 0.25,
      high: 0.25,
    });
  });

  it('covers the true mean difference about as often as it says', () => {
    let covered = 0;
    for (let run = 0; run < 200; run++) {
      const random = randomStream(run, 'coverage');
      const before = Array.from({ length: 60 }, () => random.normal());
      const after = before.map((value) => value + 0.3 + random.normal());
      const { low, high } = pairedDifference(before, after, run, 400);
      if (low <= 0.3 && 0.3 <= high) covered++;
    }
    expect(covered).toBeGreaterThan(178); // 95 % of 200, less four standard errors
    expect(covered).toBeLessThan(201);
  });
});
