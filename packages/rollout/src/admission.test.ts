import { describe, expect, it } from 'vitest';
import { MemoryAdmission } from './admission.js';

const GIB = 1024 ** 3;
const ONE = { limit: 2 * GIB, usual: GIB };

describe('MemoryAdmission', () => {
  it('lets in what usually fits, and again when one has left', () => {
    const admission = new MemoryAdmission({ budget: 6.5 * GIB, available: () => 100 * GIB });
    let inside = 0;
    while (admission.admits(ONE)) {
      admission.enter(ONE);
      inside++;
    }
    expect(inside).toBe(6);
    admission.leave(ONE);
    expect(admission.admits(ONE)).toBe(true);
    expect(admission.admits({ ...ONE, usual: 2 * GIB })).toBe(false);
  });

  it('waits while one could not grow to its limit, but never stands still', () => {
    let available = GIB;
    const admission = new MemoryAdmission({ budget: 100 * GIB, available: () => available });
    expect(admission.admits(ONE)).toBe(true);
    admission.enter(ONE);
    expect(admission.admits(ONE)).toBe(false);
    available = 2 * GIB;
    expect(admission.admits(ONE)).toBe(true);
  });

  it('knows what this machine has', () => {
    const small = { limit: 1, usual: 1 };
    expect(new MemoryAdmission().admits(small)).toBe(true);
    const counted = new MemoryAdmission();
    counted.enter(small);
    expect(counted.admits(small)).toBe(true);
    expect(counted.admits({ limit: Number.MAX_SAFE_INTEGER, usual: 1 })).toBe(false);
    expect(counted.admits({ limit: 1, usual: Number.MAX_SAFE_INTEGER })).toBe(false);
  });
});
