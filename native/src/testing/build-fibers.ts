// vitest's global setup: builds what the tests run besides the addon itself (a no-op when nothing changed), and says what is
// left out on a machine without a GPU.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Binding } from '../binding.js';
import { candidatePaths } from '../load-binding.js';

const native = fileURLToPath(new URL('../..', import.meta.url));

const variants = [
  {
    folder: 'fibers',
    sanitize: '',
    targets: ['treeward', 'fiber_cases', 'device_check', 'vector_math_check'],
  },
  {
    folder: 'fibers-address',
    sanitize: 'address',
    targets: ['treeward', 'fiber_cases', 'device_check', 'vector_math_check'],
  },
  { folder: 'fibers-thread', sanitize: 'thread', targets: ['fiber_cases'] },
];

function cmake(...args: string[]): void {
  try {
    execFileSync('cmake', args, { cwd: native, stdio: 'pipe' });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: Buffer; stderr?: Buffer };
    throw new Error(`cmake ${args.join(' ')}\n${String(stdout ?? '').slice(-4000)}${String(stderr ?? '')}`, {
      cause: error,
    });
  }
}

export default function setup(): void {
  for (const { folder, sanitize, targets } of variants) {
    const build = `build/${folder}`;
    cmake('-S', '.', '-B', build, '-DTREEWARD_FIBERS=ON', `-DTREEWARD_SANITIZE=${sanitize}`);
    cmake('--build', build, '--parallel', '2', '--target', ...targets);
  }
  const [path] = candidatePaths();
  const cuda = (createRequire(import.meta.url)(path!) as Binding).cudaInfo();
  if (!cuda.available) {
    process.stdout.write(
      `native: the suites of "cuda" are skipped: no CUDA device (${cuda.reason}); "cuda on fibers" runs instead\n`,
    );
  }
}
