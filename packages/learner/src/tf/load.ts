import { createRequire } from 'node:module';
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
  value: boolean | number | readonly number[];
}

export interface LoadOptions {
  /** Threads inside one operator; read once, when TensorFlow starts. @default 1 */
  threads?: number;
}

let loaded: TensorFlow | undefined;

/**
 * TensorFlow reads its settings from the environment when the library loads, so they are set here and never later: the
 * first call in a process decides.
 *
 * @throws TreewardError LEARNER_E_TENSORFLOW when the binding is not there or does not load
 */
export function loadTensorFlow(options: LoadOptions = {}): TensorFlow {
  if (loaded) return loaded;
  process.env['TF_CPP_MIN_LOG_LEVEL'] ??= '3';
  process.env['TF_NUM_INTRAOP_THREADS'] = String(options.threads ?? 1);
  process.env['TF_NUM_INTEROP_THREADS'] = '1';
  const require = createRequire(import.meta.url);
  // Removed in Node 23, still called by tfjs-node 4.22.
  const util = require('node:util') as { isNullOrUndefined?: (x: unknown) => boolean };
  util.isNullOrUndefined ??= (x) => x === null || x === undefined;
  try {
    loaded = require('@tensorflow/tfjs-node') as TensorFlow;
  } catch (cause) {
    throw new TreewardError(
      'LEARNER_E_TENSORFLOW',
      `@tensorflow/tfjs-node does not load: ${(cause as Error).message}`,
      { cause, hints: ['run `npm start` or `npm test` once: the bootstrap provisions libtensorflow'] },
    );
  }
  loaded.enableProdMode();
  return loaded;
}

export const rawBackend = (tf: TensorFlow): RawBackend => tf.backend() as unknown as RawBackend;
