import { loadTensorFlow, rawBackend } from './load.js';

/** Version of the libtensorflow that this process stands on. @throws TreewardError LEARNER_E_TENSORFLOW */
export function tensorflowVersion(): string {
  return rawBackend(loadTensorFlow()).binding.TF_Version;
}
