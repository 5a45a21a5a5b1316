import { fileURLToPath } from 'node:url';

/**
 * Where the TensorFlow operators of this package are built: an addon that a process requires after TensorFlow's own
 * (native/scripts/build-tensorflow.sh). Whether the file exists is the caller's business.
 */
export const tensorflowOperatorsPath = (): string =>
  process.env['TREEWARD_NATIVE_TENSORFLOW_PATH'] ??
  fileURLToPath(new URL('../build/tensorflow/treeward_tensorflow.node', import.meta.url));
