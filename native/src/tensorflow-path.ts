import { fileURLToPath } from 'node:url';

/**
 * Where the TensorFlow operators of this package are built: an addon that a process requires after TensorFlow's own
 * (native/scripts/build-tensorflow.sh). Whether the file exists is the caller's business.
 */
export const tensorflowOperatorsPath = (): string =>
  process.env['TREEWARD_NATIVE_TENSORFLOW_PATH'] ??
  fileURLToPath(new URL('../build/tensorflow/treeward_tensorflow.node', import.meta.url));

/** Their kernels for a GPU (native/scripts/build-tensorflow-gpu.sh): required after the file above. */
export const tensorflowGpuOperatorsPath = (): string =>
  process.env['TREEWARD_NATIVE_TENSORFLOW_GPU_PATH'] ??
  fileURLToPath(new URL('../build/tensorflow/treeward_tensorflow_gpu.node', import.meta.url));
