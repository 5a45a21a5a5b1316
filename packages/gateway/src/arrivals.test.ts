import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Arrivals } from './arrivals.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Whether a promise has settled once everything that is ready has run. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(() => (done = true));
  await vi.advanceTimersByTimeAsync(0);
  return done;
}

describe('waiting for a call', () => {
  it('ends with its arrival, and skips to the last one where several have come', async () => {
    const arrivals = new Arrivals();
    const first = arrivals.next(0);
    expect(await settled(first)).toBe(false);
    arrivals.arrived(0);
    expect(await first).toBe(0);
    const second = arrivals.next(1);
    arrivals.arrived(1);
    arrivals.arrived(2);
    expect(await second).toBe(2);
    expect(await arrivals.next(1)).toBe(2);
    expect(await settled(arrivals.next(3))).toBe(false);
  });

  it('ends with null when the rollout closes, but not before calls that have come', async () => {
    const arrivals = new Arrivals();
    arrivals.arrived(0);
    const waiting = [arrivals.next(1), arrivals.next(1)];
    arrivals.close();
    expect(await Promise.all(waiting)).toEqual([null, null]);
    expect(await arrivals.next(0)).toBe(0);
    expect(await arrivals.next(1)).toBeNull();
  });
});

describe('holding a reply', () => {
  it('ends with the acknowledgement of its call or of a later one', async () => {
    const arrivals = new Arrivals();
    const held = [0, 1, 2].map((call) => arrivals.held(call));
    arrivals.acknowledge(1);
    expect(await Promise.all(held.map(settled))).toEqual([true, true, false]);
    arrivals.acknowledge(0); // late news changes nothing
    expect(await settled(held[2]!)).toBe(false);
    arrivals.acknowledge(5);
    expect(await settled(held[2]!)).toBe(true);
    expect(await settled(arrivals.held(4))).toBe(true);
  });

  it('ends after 250 ms without one, however many calls come meanwhile, and with the rollout', async () => {
    const arrivals = new Arrivals();
    const held = arrivals.held(0);
    for (let call = 1; call < 25; call++) {
      arrivals.arrived(call);
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(await settled(held)).toBe(false);
    await vi.advanceTimersByTimeAsync(10);
    expect(await settled(held)).toBe(true);
    const last = arrivals.held(30);
    arrivals.close();
    expect(await settled(last)).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });
});
