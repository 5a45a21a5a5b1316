// The layer that runs `.cu` sources on a CPU: right kernels pass, deliberately broken ones are caught, and every kernel
// passes its device check on fibers under ASan and UBSan. src/testing/build-fibers.ts builds what runs here.
import { execFile, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { builtProgram, type Variant } from './testing/built-programs.js';

function run(
  variant: Variant,
  program: string,
  ...args: string[]
): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(builtProgram(variant, program), args, { encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

const seeds = ['0', '1', '2', '3'];
const right = ['reduce', 'count', 'warp-exchange', 'ballots', 'grid'];

describe.each(['plain', 'address', 'thread'] as const)('%s', (variant) => {
  test.each(right)('%s is right under every schedule', (name) => {
    for (const seed of seeds)
      expect(run(variant, 'fiber_cases', name, seed)).toEqual({ status: 0, output: 'ok\n' });
  });
});

describe('broken kernels are caught under every schedule', () => {
  const cases: [Variant, string, RegExp][] = [
    ['plain', 'reduce-missing-barrier', /wrong result/],
    ['thread', 'reduce-missing-barrier', /data race/],
    ['thread', 'count-racy', /data race/],
    ['plain', 'warp-exchange-missing-syncwarp', /wrong result/],
    ['thread', 'warp-exchange-missing-syncwarp', /data race/],
    [
      'plain',
      'divergent-barrier',
      /deadlock in block 0,0,0: 64 threads alive, 40 at __syncthreads, 24 in a warp/,
    ],
    ['plain', 'two-barriers', /threads of one block meet at different barriers/],
    ['plain', 'wrong-mask', /mask leaves it out/],
    ['plain', 'uninitialised', /wrong result/],
    ['address', 'out-of-bounds', /heap-buffer-overflow/],
    ['address', 'shared-out-of-bounds', /heap-buffer-overflow/],
  ];
  test.each(cases)('%s: %s', (variant, name, message) => {
    for (const seed of seeds) {
      const { status, output } = run(variant, 'fiber_cases', name, seed);
      expect(output).toMatch(message);
      expect(status).not.toBe(0);
    }
  });
});

// A process per operator, two at a time (vitest.config.mts): the kernels' checks are most of this package's test time.
const kernels = new URL('native/kernels/', import.meta.url);
const operators = readdirSync(kernels).filter((stem) =>
  readdirSync(new URL(`${stem}/`, kernels)).includes(`${stem}_cuda.cu`),
);

describe.concurrent(
  'kernels equal the CPU implementation, with random schedules under ASan and UBSan',
  () => {
    test.each(operators)('%s', async (operator) => {
      const args = ['--seeds', '2', '--only', operator];
      const child = promisify(execFile)(builtProgram('address', 'device_check_on_fibers'), args);
      await expect(child).resolves.toMatchObject({
        stdout: expect.stringMatching(/\n[1-9]\d+ checks, 0 failed\n$/),
      });
    });
  },
);
