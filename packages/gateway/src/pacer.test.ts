import { describe, expect, it } from 'vitest';
import { Pacer } from './pacer.js';

/** Holds the thread, as parsing a body does. */
function hold(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe('a pacer', () => {
  it('runs at once while there is time, and lets the loop turn between what comes together', async () => {
    const pacer = new Pacer(2);
    const order: number[] = [];
    let turns = 0;
    let counting = true;
    const count = (): void => {
      turns++;
      if (counting) setImmediate(count);
    };
    const first = pacer.run(() => order.push(0));
    expect(first).toBe(1); // no promise: it has run
    const rest = Array.from({ length: 20 }, (_, i) =>
      pacer.run(() => {
        hold(3);
        return order.push(i + 1);
      }),
    );
    setImmediate(count);
    await Promise.all(rest);
    counting = false;
    expect(order).toEqual(Array.from({ length: 21 }, (_, i) => i));
    // One at once, then one a turn: each uses up a turn's time.
    expect(turns).toBeGreaterThanOrEqual(18);
  });

  it('gives a failure to whoever asked, at once or later', async () => {
    const pacer = new Pacer(1);
    const fail = (): never => {
      throw new Error('no JSON');
    };
    expect(() => pacer.run(fail)).toThrow('no JSON');
    void pacer.run(() => hold(2));
    const later = pacer.run(fail);
    const next = pacer.run(() => 'fine');
    await expect(later).rejects.toThrow('no JSON');
    expect(await next).toBe('fine');
  });
});
