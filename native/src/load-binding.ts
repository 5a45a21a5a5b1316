import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { INTERFACE_VERSION, type Backend, type Binding, type CudaInfo } from './binding.js';
import { NativeError } from './errors.js';

export interface BackendInfo {
  /** What computes work that is large enough; small work always runs on the CPU. */
  backend: Backend;
  /** The GPU or the processor, as the system names it. */
  device: string;
  /** Threads a CPU operator uses at most: `TREEWARD_NATIVE_THREADS`, 1 by default. */
  threads: number;
  /** What there is of CUDA, or why nothing. */
  cuda: CudaInfo;
  compiler: string;
  napi: number;
  /** The file that was loaded. */
  path: string;
}

interface Loaded {
  binding: Binding;
  path: string;
}

const HINTS = [
  'build it: npx nx run native:build-native (needs cmake and g++, nvcc for CUDA; a minute)',
  'or name a built file: TREEWARD_NATIVE_PATH=/path/to/treeward.node',
];

const require = createRequire(import.meta.url);

/** Where a built addon may lie. `src/` and `dist/` are both one level below the package. */
export function candidatePaths(environment: NodeJS.ProcessEnv = process.env): string[] {
  const named = environment['TREEWARD_NATIVE_PATH'];
  const local = ['Release', 'Debug'].map((kind) =>
    fileURLToPath(new URL(`../build/${kind}/treeward.node`, import.meta.url)),
  );
  // A named file that doesn't work is an error, not a reason to take another one silently.
  return named ? [named] : local;
}

/** @throws NativeError NATIVE_E_LOAD with one line per file tried and why it failed */
export function loadFrom(paths: readonly string[]): Loaded {
  const failures: string[] = [];
  for (const path of paths) {
    if (!existsSync(path)) {
      failures.push(`${path}: no such file`);
      continue;
    }
    try {
      const binding = require(path) as Binding;
      if (binding.interfaceVersion === INTERFACE_VERSION) return { binding, path };
      failures.push(
        `${path}: built for interface ${String(binding.interfaceVersion)}, this package needs ${INTERFACE_VERSION}: build it again`,
      );
    } catch (error) {
      failures.push(`${path}: ${(error as Error).message}`);
    }
  }
  throw new NativeError(
    'NATIVE_E_LOAD',
    ['the native addon cannot be loaded:', ...failures, ...HINTS].join('\n  '),
    { hints: HINTS, data: { failures } },
  );
}

/**
 * What `TREEWARD_NATIVE_BACKEND` (`auto`, `cuda` or `cpu`; nothing = `auto`) comes to on this machine.
 *
 * @throws NativeError NATIVE_E_BACKEND when it asks for what this build or machine does not have
 */
export function resolveBackend(wanted: string | undefined, cuda: CudaInfo): Backend {
  if (wanted === 'cpu') return 'cpu';
  if (wanted === undefined || wanted === '' || wanted === 'auto') return cuda.available ? 'cuda' : 'cpu';
  if (wanted === 'cuda' && cuda.available) return 'cuda';
  const reason = cuda.available ? 'it is one of auto, cuda, cpu' : cuda.reason;
  throw new NativeError('NATIVE_E_BACKEND', `TREEWARD_NATIVE_BACKEND=${wanted}: ${reason}`, {
    hints: ['use TREEWARD_NATIVE_BACKEND=cpu, or leave it unset'],
  });
}

let loaded: (Loaded & { twins: Binding; backend: Backend; forced: boolean }) | undefined;
let twinsWanted = false;

/** The asynchronous twins of all operators under the operators' own names. */
function twinsOf(binding: Binding): Binding {
  const functions = binding as unknown as Record<string, unknown>;
  const twins = Object.keys(functions).filter((name) => `${name}Async` in functions);
  return { ...binding, ...Object.fromEntries(twins.map((name) => [name, functions[`${name}Async`]])) };
}

/** Runs an operator's function so that the binding it loads is that of the twins: what it returns is then a promise. */
export function withTwins<T>(call: () => T): T {
  twinsWanted = true;
  try {
    return call();
  } finally {
    twinsWanted = false;
  }
}

function load(): NonNullable<typeof loaded> {
  if (!loaded) {
    const wanted = process.env['TREEWARD_NATIVE_BACKEND'];
    const found = loadFrom(candidatePaths());
    const backend = resolveBackend(wanted, found.binding.cudaInfo());
    loaded = { ...found, twins: twinsOf(found.binding), backend, forced: wanted === 'cuda' };
  }
  return loaded;
}

/**
 * The addon, loaded on first use (importing this package never fails), and where `work` of an operator is done: on the
 * GPU when there is one and the work is worth the copies, i.e. at least `worthwhile`.
 */
export function loadBinding(work: number, worthwhile: number): { binding: Binding; backend: Backend } {
  const promise = twinsWanted;
  twinsWanted = false; // for this operator only, not for one that a getter among its arguments calls
  const { binding, twins, backend, forced } = load();
  return {
    binding: promise ? twins : binding,
    backend: backend === 'cuda' && (forced || work >= worthwhile) ? 'cuda' : 'cpu',
  };
}

/** What computes, for `doctor` and for every benchmark row. @throws NativeError NATIVE_E_LOAD, NATIVE_E_BACKEND */
export function getBackendInfo(): BackendInfo {
  const { binding, path, backend } = load();
  const cuda = binding.cudaInfo();
  return {
    backend,
    device: backend === 'cuda' && cuda.available ? cuda.device : (cpus()[0]?.model ?? 'unknown'),
    cuda,
    ...binding.buildInfo(),
    path,
  };
}
