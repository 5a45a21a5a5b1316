// The exponentials that the CPU kernels vectorise, over the whole range of floats: src/native/testing/vector_math_check.cc, built by
// the global setup with and without the instruction sets chosen at load.
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { builtProgram } from './testing/built-programs.js';

const full = process.env['TREEWARD_TEST_FULL'] === '1';

describe.each(['plain', 'address'] as const)('%s', (variant) => {
  const program = builtProgram(variant, 'vector_math_check');
  // Primes, so that the bit patterns of another offset are others.
  const stride = full ? 97 : variant === 'plain' ? 4001 : 40_009;

  test('exp is within 1.01 ulp on floats (denormals included), right at infinities and NaN, within 2 ulp on doubles', () => {
    fc.assert(
      fc.property(fc.nat({ max: stride - 1 }), (offset) => {
        const { status, stdout } = spawnSync(program, [String(stride), String(offset)], { encoding: 'utf8' });
        expect(stdout).toMatch(
          /float: \d{5,} compared, worst .*, 0 special values wrong\ndouble: \d+ compared/,
        );
        expect(status, stdout).toBe(0);
      }),
      { numRuns: 3 },
    );
  });
});
