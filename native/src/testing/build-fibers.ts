// vitest's global setup: builds what the tests run besides the addon itself (a no-op when nothing changed), and says what is
// left out on a machine without a GPU.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Binding } from '../binding.js';
import { candidatePaths } from '../load-binding.js';

const native = fileURLToPath(new URL('../..', import.meta.url));

/** Built beside the addon, from its objects, and with sanitizers in folders of their own. */
const sanitised = [
  {
    folder: 'fibers-address',
    sanitize: 'address',
    targets: ['treeward_on_fibers', 'fiber_cases', 'device_check_on_fibers', 'vector_math_check'],
  },
  { folder: 'fibers-thread', sanitize: 'thread', targets: ['fiber_cases'] },
];

function run(command: string, ...args: string[]): void {
  try {
    execFileSync(command, args, { cwd: native, stdio: 'pipe' });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: Buffer; stderr?: Buffer };
    throw new Error(
      `${command} ${args.join(' ')}\n${String(stdout ?? '').slice(-4000)}${String(stderr ?? '')}`,
      {
        cause: error,
      },
    );
  }
}

export default function setup(): void {
  const require = createRequire(import.meta.url);
  const cmakeJs = require.resolve('cmake-js/bin/cmake-js');
  run(
    process.execPath,
    cmakeJs,
    'build',
    '--CDCMAKE_BUILD_TYPE=Release',
    '--parallel',
    '2',
    '--target',
    'tests',
  );
  for (const { folder, sanitize, targets } of sanitised) {
    const build = `build/${folder}`;
    run('cmake', '-S', '.', '-B', build, '-DTREEWARD_CUDA=OFF', `-DTREEWARD_SANITIZE=${sanitize}`);
    run('cmake', '--build', build, '--parallel', '2', '--target', ...targets);
  }
  const [path] = candidatePaths();
  const cuda = (require(path!) as Binding).cudaInfo();
  if (!cuda.available) {
    process.stdout.write(
      `native: the suites of "cuda" are skipped: no CUDA device (${cuda.reason}); "cuda on fibers" runs instead\n`,
    );
  }
}
