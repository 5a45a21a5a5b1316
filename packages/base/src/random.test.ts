import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { randomStream } from './random.js';

const take = <T>(count: number, draw: () => T): T[] => Array.from({ length: count }, draw);

describe('randomStream', () => {
  it('gives the same numbers on every machine', () => {
    const random = randomStream(7, 'rollout', 3);
    expect(take(3, random.next)).toMatchInlineSnapshot(`
      [
        0.5947327346987472,
        0.7035786501627689,
        0.49529294419827674,
      ]
    `);
    expect(random.shuffle([1, 2, 3, 4, 5])).toMatchInlineSnapshot(`
      [
        4,
        2,
        1,
        5,
        3,
      ]
    `);
    expect(random.normal()).toMatchInlineSnapshot(`1.6263508156929318`);
  });

  it('is another stream for every seed and label, and labels do not run into each other', () => {
    const names: [number | string, ...(number | string)[]][] = [
      [1],
      [2],
      ['1'],
      [1, 'a'],
      [1, 'b'],
      [1, 'a', 'b'],
      [1, 'ab'],
      [1, 1],
      [1, '1'],
      [11],
    ];
    const firsts = names.map((name) => randomStream(...name).next());
    expect(new Set(firsts).size).toBe(names.length);
  });

  it('draws from its own state only', () => {
    const a = randomStream(1, 'a');
    const alone = take(5, randomStream(1, 'a').next);
    const b = randomStream(1, 'b');
    const mixed = take(5, () => {
      b.next();
      return a.next();
    });
    expect(mixed).toEqual(alone);
  });

  it('stays in range and is about uniform and about normal', () => {
    const random = randomStream('spread');
    const n = 20_000;
    const uniform = take(n, random.next);
    expect(uniform.every((x) => x >= 0 && x < 1)).toBe(true);
    const mean = uniform.reduce((sum, x) => sum + x, 0) / n;
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.01); // 5 standard errors
    const counts = new Array<number>(6).fill(0);
    for (const x of take(n, () => random.below(6))) counts[x]!++;
    const chi2 = counts.reduce((sum, count) => sum + (count - n / 6) ** 2 / (n / 6), 0);
    expect(chi2).toBeLessThan(25); // 5 degrees of freedom: p about 1e-4
    const normal = take(n, random.normal);
    expect(normal.every(Number.isFinite)).toBe(true);
    const second = normal.reduce((sum, x) => sum + x * x, 0) / n;
    expect(Math.abs(second - 1)).toBeLessThan(0.06);
  });

  it('shuffles without loss and picks members', () => {
    fc.assert(
      fc.property(fc.integer(), fc.array(fc.integer(), { minLength: 1 }), (seed, items) => {
        const random = randomStream(seed);
        const copy = [...items];
        const shuffled = random.shuffle(items);
        expect(items).toEqual(copy);
        expect([...shuffled].sort()).toEqual([...items].sort());
        expect(items).toContain(random.pick(items));
      }),
    );
    expect(() => randomStream(1).pick([])).toThrow(RangeError);
  });

  it('reaches every order of three', () => {
    const random = randomStream('orders');
    const seen = new Map<string, number>();
    for (let i = 0; i < 6000; i++) {
      const order = random.shuffle([1, 2, 3]).join('');
      seen.set(order, (seen.get(order) ?? 0) + 1);
    }
    expect(seen.size).toBe(6);
    for (const count of seen.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });
});
