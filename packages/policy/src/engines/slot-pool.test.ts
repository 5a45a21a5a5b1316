import { describe, expect, it } from 'vitest';
import { SlotPool } from './slot-pool.js';

const never = new AbortController().signal;

describe('SlotPool', () => {
  it('gives a tag its own slot back, and a new tag one never used or idle for longest', async () => {
    const pool = new SlotPool(['a', 'b']);
    const one = (await pool.acquire('one', never))!;
    pool.release(one);
    const two = (await pool.acquire('two', never))!;
    expect(two.sequence).not.toBe(one.sequence);
    pool.release(two);
    expect(await pool.acquire('two', never)).toBe(two);
    pool.release(two);
    expect(await pool.acquire('three', never)).toBe(one);
  });

  it('serves those who wait in order, and forgets who gave up', async () => {
    const pool = new SlotPool(['only']);
    const held = (await pool.acquire('held', never))!;
    const order: string[] = [];
    const giveUp = new AbortController();
    const wait = async (tag: string, signal = never): Promise<void> => {
      const slot = await pool.acquire(tag, signal);
      order.push(slot ? tag : `${tag} gave up`);
      if (slot) pool.release(slot);
    };
    const all = [wait('first'), wait('second', giveUp.signal), wait('third')];
    giveUp.abort();
    pool.release(held);
    await Promise.all(all);
    expect(order).toEqual(['second gave up', 'first', 'third']);
    expect(await pool.acquire('x', AbortSignal.abort())).toBeNull();
    expect(await pool.acquire('x', never)).toBe(held);
  });
});
