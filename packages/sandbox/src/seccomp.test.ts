import { describe, expect, it } from 'vitest';
import { DENIED_SYSCALLS, seccompProgram } from './seccomp.js';

/** A classic BPF machine for the five instructions used, over struct seccomp_data {nr, arch}. */
function decide(program: Buffer, nr: number, arch: number): number {
  let accumulator = 0;
  for (let pc = 0; pc < program.length / 8; pc++) {
    const [code, jt, jf, k] = [
      program.readUInt16LE(pc * 8),
      program.readUInt8(pc * 8 + 2),
      program.readUInt8(pc * 8 + 3),
      program.readUInt32LE(pc * 8 + 4),
    ];
    if (code === 0x20) accumulator = k === 0 ? nr : arch;
    else if (code === 0x15) pc += accumulator === k ? jt : jf;
    else if (code === 0x35) pc += accumulator >= k ? jt : jf;
    else if (code === 0x06) return k;
    else throw new Error(`unexpected code ${code}`);
  }
  throw new Error('ran off the end');
}

describe('seccomp program', () => {
  const program = seccompProgram('x64');
  const X86_64 = 0xc000003e;

  it('denies exactly the listed calls with EPERM', () => {
    const denied = new Set(Object.values(DENIED_SYSCALLS));
    for (let nr = 0; nr < 600; nr++) {
      expect(decide(program, nr, X86_64), String(nr)).toBe(denied.has(nr) ? 0x00050001 : 0x7fff0000);
    }
  });

  it('denies the x32 calls and kills other architectures, whose numbers mean other calls', () => {
    expect(decide(program, 0x40000000, X86_64)).toBe(0x00050001);
    expect(decide(program, 0x40000000 + 520, X86_64)).toBe(0x00050001);
    expect(decide(program, 1, 0x40000003)).toBe(0x80000000);
  });

  it('refuses to pretend on other machines', () => {
    expect(() => seccompProgram('arm64')).toThrow(/unfiltered/);
  });
});
