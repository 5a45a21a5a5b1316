import { describe, expect, it } from 'vitest';
import { MemoryAdmission } from './admission.js';

const GIB = 1024 ** 3;

describe('MemoryAdmission', () => {
  it('lets in what the overcommitted budget holds, and again when one has left', () => {
    const admission = new MemoryAdmission({ budget: 4 * GIB, overcommit: 1.5, available: () => 100 * GIB });
    let inside = 0;
    while (admission.admits(GIB)) {
      admission.enter(GIB);
      inside++;
    }
    expect(inside).toBe(6);
    admission.leave(GIB);
    expect(admission.admits(GIB)).toBe(true);
    expect(admission.admits(1.5 * GIB)).toBe(false);
  });

  it('waits while memory is short, but never stands still', () => {
    let available = GIB / 2;
    const admission = new MemoryAdmission({ budget: 100 * GIB, available: () => available });
    expect(admission.admits(GIB)).toBe(true);
    admission.enter(GIB);
    expect(admission.admits(GIB)).toBe(false);
    available = 2 * GIB;
    expect(admission.admits(GIB)).toBe(true);
  });

  it('knows what this machine has', () => {
    expect(new MemoryAdmission().admits(1)).toBe(true);
    const counted = new MemoryAdmission();
    counted.enter(1);
    expect(counted.admits(1)).toBe(true);
    expect(counted.admits(Number.MAX_SAFE_INTEGER)).toBe(false);
  });
});
