// Wrong arguments never crash the process: the addon built with ASan and UBSan (CUDA kernels on fibers), every function fuzzed,
// the asynchronous twins with their arrays written over, detached and transferred meanwhile.
import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { builtProgram } from './testing/built-programs.js';

const native = fileURLToPath(new URL('..', import.meta.url));
const runtime = (name: string): string =>
  execFileSync('g++', [`-print-file-name=${name}`], { encoding: 'utf8' }).trim();

test.each(['1', '2'])('seed %s', (seed) => {
  const addon = builtProgram('address', 'treeward_on_fibers.node');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--expose-gc', `${native}scripts/fuzz-addon.mjs`, addon, '60', seed],
    {
      encoding: 'utf8',
      // The sanitizers' runtimes have to come before node; node's own leaks at exit are not the matter here.
      env: {
        ...process.env,
        LD_PRELOAD: `${runtime('libasan.so')} ${runtime('libubsan.so')}`,
        ASAN_OPTIONS: 'detect_leaks=0',
        TREEWARD_NATIVE_THREADS: '2',
      },
    },
  );
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^\d{3,} results, \d{3,} errors with a code\n$/);
  expect(status).toBe(0);
});
