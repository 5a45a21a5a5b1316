import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import type { Tensor } from '@tensorflow/tfjs';
import type * as Tf from '@tensorflow/tfjs-node';

export type TensorFlow = typeof Tf;
export type { Tensor };

/** The part of tfjs-node's backend that runs any registered TensorFlow operator by name. */
export interface RawBackend {
  binding: Record<string, number> & { TF_Version: string };
  executeSingleOutput(name: string, attributes: readonly OpAttribute[], inputs: readonly Tensor[]): Tensor;
  executeMultipleOutputs(
    name: string,
    attributes: readonly OpAttribute[],
    inputs: readonly Tensor[],
    count: number,
  ): Tensor[];
}

export interface OpAttribute {
  name: string;
  type: number;
  value: boolean | number | string | readonly number[];
}

export interface LoadOptions {
  /** Threads inside one operator; read once, when TensorFlow starts. @default 1 */
  threads?: number;
}

let loaded: TensorFlow | undefined;

/** Which build of TensorFlow this process has. */
export interface TensorFlowDevice {
  device: 'gpu' | 'cpu';
  /** Why it is not a GPU. */
  reason?: string;
}
let device: TensorFlowDevice = { device: 'cpu', reason: 'TensorFlow is not loaded' };
export const tensorflowDevice = (): TensorFlowDevice => device;

/**
 * TensorFlow reads its settings from the environment when the library loads, so they are set here and never later: the
 * first call in a process decides. `TREEWARD_TENSORFLOW=auto|cpu|gpu`: `auto` takes the GPU build where
 * `node tools/tfjs-gpu.mjs` has made it and an NVIDIA driver is; a build that finds no device computes on the CPU and says so.
 *
 * @throws TreewardError LEARNER_E_TENSORFLOW when the binding is not there or does not load
 */
export function loadTensorFlow(options: LoadOptions = {}): TensorFlow {
  if (loaded) return loaded;
  process.env['TF_CPP_MIN_LOG_LEVEL'] ??= '3';
  process.env['TF_NUM_INTRAOP_THREADS'] = String(options.threads ?? 1);
  process.env['TF_NUM_INTEROP_THREADS'] = '1';
  // Removed in Node 23, still called by tfjs-node 4.22.
  const util = createRequire(import.meta.url)('node:util') as { isNullOrUndefined?: (x: unknown) => boolean };
  util.isNullOrUndefined ??= (x) => x === null || x === undefined;
  const build = chooseBuild();
  try {
    loaded = createRequire(build.from)(build.name) as TensorFlow;
  } catch (cause) {
    throw new TreewardError(
      'LEARNER_E_TENSORFLOW',
      `${build.name} does not load: ${(cause as Error).message}`,
      { cause, hints: [build.hint] },
    );
  }
  if (build.gpu && (loaded.backend() as unknown as { isUsingGpuDevice?: boolean }).isUsingGpuDevice)
    device = { device: 'gpu' };
  else {
    device = { device: 'cpu', reason: build.gpu ? 'the GPU build found no device' : build.reason };
    if (build.gpu) process.stderr.write('learner: the GPU build found no device, computing on the CPU\n');
  }
  loaded.enableProdMode();
  return loaded;
}

interface Build {
  name: string;
  /** A file whose node_modules hold it. */
  from: string;
  gpu: boolean;
  reason: string;
  hint: string;
}

/** @throws TreewardError LEARNER_E_TENSORFLOW when the GPU build is asked for and not there */
function chooseBuild(): Build {
  const { env } = process;
  const asked = env['TREEWARD_TENSORFLOW'] ?? 'auto';
  const cpu = (reason: string): Build => ({
    name: '@tensorflow/tfjs-node',
    from: import.meta.url,
    gpu: false,
    reason,
    hint: 'run `npm start` or `npm test` once: the bootstrap provisions libtensorflow',
  });
  if (asked === 'cpu') return cpu('TREEWARD_TENSORFLOW=cpu');
  const cache =
    env['TREEWARD_CACHE'] ??
    join(env['XDG_CACHE_HOME'] ?? join(env['HOME'] ?? homedir(), '.cache'), 'treeward');
  const folder = join(cache, 'tfjs-gpu');
  const hint = 'make it: node tools/tfjs-gpu.mjs';
  const made = existsSync(join(folder, 'node_modules/@tensorflow/tfjs-node-gpu/.treeward-binding.json'));
  if (!made && asked === 'gpu') {
    throw new TreewardError('LEARNER_E_TENSORFLOW', `there is no GPU build of TensorFlow in ${folder}`, {
      hints: [hint],
    });
  }
  if (!made) return cpu('the GPU build is not made');
  if (asked !== 'gpu' && !existsSync('/proc/driver/nvidia/version')) return cpu('no NVIDIA driver');
  return {
    name: '@tensorflow/tfjs-node-gpu',
    from: join(folder, 'package.json'),
    gpu: true,
    reason: '',
    hint,
  };
}

export const rawBackend = (tf: TensorFlow): RawBackend => tf.backend() as unknown as RawBackend;
