// The layer that runs `.cu` sources on a CPU: right kernels pass, deliberately broken ones are caught, and every kernel
// passes its device check on fibers under ASan and UBSan. src/testing/build-fibers.ts builds what runs here.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const build = (folder: string): string => fileURLToPath(new URL(`../build/${folder}/`, import.meta.url));

function run(folder: string, program: string, ...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(`${build(folder)}${program}`, args, { encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

const seeds = ['0', '1', '2', '3'];
const right = ['reduce', 'count', 'warp-exchange', 'ballots', 'grid'];

describe.each(['fibers', 'fibers-address', 'fibers-thread'])('%s', (folder) => {
  test.each(right)('%s is right under every schedule', (name) => {
    for (const seed of seeds)
      expect(run(folder, 'fiber_cases', name, seed)).toEqual({ status: 0, output: 'ok\n' });
  });
});

describe('broken kernels are caught under every schedule', () => {
  const cases: [string, string, RegExp][] = [
    ['fibers', 'reduce-missing-barrier', /wrong result/],
    ['fibers-thread', 'reduce-missing-barrier', /data race/],
    ['fibers-thread', 'count-racy', /data race/],
    ['fibers', 'warp-exchange-missing-syncwarp', /wrong result/],
    ['fibers-thread', 'warp-exchange-missing-syncwarp', /data race/],
    [
      'fibers',
      'divergent-barrier',
      /deadlock in block 0,0,0: 64 threads alive, 40 at __syncthreads, 24 in a warp/,
    ],
    ['fibers', 'two-barriers', /threads of one block meet at different barriers/],
    ['fibers', 'wrong-mask', /mask leaves it out/],
    ['fibers', 'uninitialised', /wrong result/],
    ['fibers-address', 'out-of-bounds', /heap-buffer-overflow/],
    ['fibers-address', 'shared-out-of-bounds', /heap-buffer-overflow/],
  ];
  test.each(cases)('%s: %s', (folder, name, message) => {
    for (const seed of seeds) {
      const { status, output } = run(folder, 'fiber_cases', name, seed);
      expect(output).toMatch(message);
      expect(status).not.toBe(0);
    }
  });
});

test('every kernel equals the CPU implementation, with random schedules under ASan and UBSan', () => {
  const { status, output } = run('fibers-address', 'device_check', '--seeds', '2');
  expect(output).toMatch(/checks, 0 failed\n$/);
  expect(status).toBe(0);
});
