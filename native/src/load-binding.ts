import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { INTERFACE_VERSION, type Binding } from './binding.js';
import { NativeError } from './errors.js';

export interface BackendInfo {
  backend: 'cpu';
  /** The processor, as the system names it. */
  device: string;
  /** Threads an operator uses. The CPU kernels run on the calling thread. */
  threads: number;
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
  'build it: npx nx run native:build-native (needs cmake and g++; 15 s)',
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

/** @throws NativeError NATIVE_E_BACKEND when TREEWARD_NATIVE_BACKEND asks for what this build does not have */
export function checkBackend(wanted: string | undefined): void {
  if (wanted === undefined || wanted === '' || wanted === 'auto' || wanted === 'cpu') return;
  throw new NativeError(
    'NATIVE_E_BACKEND',
    `TREEWARD_NATIVE_BACKEND=${wanted}: this addon has the cpu backend only`,
    {
      hints: ['use TREEWARD_NATIVE_BACKEND=cpu, or leave it unset'],
    },
  );
}

let loaded: Loaded | undefined;

function load(): Loaded {
  if (!loaded) {
    checkBackend(process.env['TREEWARD_NATIVE_BACKEND']);
    loaded = loadFrom(candidatePaths());
  }
  return loaded;
}

/** The addon, loaded on first use: importing this package never fails. */
export function loadBinding(): Binding {
  return load().binding;
}

/** What computes, for `doctor` and for every benchmark row. @throws NativeError NATIVE_E_LOAD, NATIVE_E_BACKEND */
export function getBackendInfo(): BackendInfo {
  const { binding, path } = load();
  return {
    backend: 'cpu',
    device: cpus()[0]?.model ?? 'unknown',
    threads: 1,
    ...binding.buildInfo(),
    path,
  };
}
